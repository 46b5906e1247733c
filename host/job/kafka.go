package job

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// KafkaSource reads topics of a cluster.
type KafkaSource struct {
	Connection string // name of a kafka connection
	// Topics are read by name, or Pattern all whose whole name it matches. One of the two is set.
	Topics  []string
	Pattern string
	Start   KafkaStart
	// Isolation is read_committed or read_uncommitted.
	Isolation  string
	Group      string // consumer group that offsets are committed to, for other tools; "" none
	OnDataLoss string // fail, skip
	Formats    Formats
}

// KafkaStart says where a job without progress begins. The zero value is the start of every partition.
type KafkaStart struct {
	Latest bool
	TimeMS int64 // milliseconds since 1970; 0 unset
	// Offsets by topic and partition; -1 is the end, -2 the start, as in Spark.
	Offsets map[string]map[int32]int64
}

func describeKafkaSource() Field {
	f := Field{
		Name: "kafka", Type: TypeObject, Component: true, Example: "{connection: main, topics: [orders]}",
		Doc: "Reads topics of a cluster. A record's timestamp is its event time, unless eventTime says otherwise.",
		Fields: []Field{
			{Name: "connection", Type: TypeName, Required: true, Example: "main", Doc: "The connection that names the cluster."},
			{
				Name: "topics", Type: TypeList, Elem: &Field{Type: TypeString, Interpolated: true}, Min: 1, Max: 1000, Interpolated: true,
				Example: `["${env:IN:-orders}"]`, Doc: "The topics. Give these or a pattern.",
			},
			{
				Name: "pattern", Type: TypeString, Example: `"orders\\..*"`,
				Doc: "A regular expression (RE2) for whole names of topics. Topics that come later are read from their start.",
			},
			{
				Name: "from", Type: TypeString, Default: "earliest", Example: "latest",
				Doc: "Where a job without progress begins: earliest, latest, or an RFC 3339 time. Partitions that come later begin at their start.",
			},
			{
				Name: "offsets", Type: TypeConfig, Example: "{orders: {0: 1200, 1: -1}}",
				Doc: "Instead of from: where partitions of topics begin; -1 is the end, -2 the start. Those that are not named begin at their start.",
			},
			{
				Name: "isolation", Type: TypeEnum, Values: []string{"read_committed", "read_uncommitted"}, Default: "read_committed",
				Doc: "read_uncommitted reads records of open and aborted transactions too.",
			},
			{
				Name: "group", Type: TypeString, Example: "orders-lag",
				Doc: "A consumer group of the job's own that offsets are committed to, for lag tools. They are never read back.",
			},
			{
				Name: "onDataLoss", Type: TypeEnum, Values: []string{"fail", "skip"}, Default: "fail",
				Doc: "What happens when a topic is gone or was made anew, a log was cut, or records were deleted before they were read: fail, or go on with a warning.",
			},
		},
	}
	f.Fields = append(f.Fields, describeFormats(
		"How values are written. avro, protobuf and json-schema: in a schema registry's framing; each becomes one JSON object, by the schema that wrote it. "+
			"A record without such framing, or whose schema the registry does not know, follows errors; while the registry is away the job waits.",
		"How keys are written.")...)
	return f
}

func buildKafkaSource(v *value) *KafkaSource {
	s := &KafkaSource{
		Connection: v.at("connection").text, Topics: v.at("topics").texts(), Pattern: v.at("pattern").text,
		Isolation: v.at("isolation").text, Group: v.at("group").text, OnDataLoss: v.at("onDataLoss").text,
		Formats: buildFormats(v),
	}
	if at, err := time.Parse(time.RFC3339, v.at("from").text); err == nil {
		s.Start.TimeMS = at.UnixMilli()
	}
	s.Start.Latest = v.at("from").text == "latest"
	if v.at("offsets").set {
		s.Start.Offsets, _ = kafkaOffsets(v.at("offsets").json)
	}
	return s
}

func (c *checker) kafkaSource(j *Job, v *value, s *KafkaSource) {
	c.connection(j, v.at("connection"), "kafka")
	c.formats(j, v, s.Formats)
	if v.at("topics").set == v.at("pattern").set {
		c.wrongAt(v.path, CodeConflict, "a kafka source takes either topics or a pattern", "")
	}
	c.unique(v.at("topics"), "topic")
	for _, t := range v.at("topics").items {
		if t.good() && !topicForm.MatchString(t.text) {
			c.wrongAt(t.path, CodeValue, fmt.Sprintf("%q is no name of a topic: 1 to 249 letters, digits, dots, dashes and underscores", cut(t.text)), "")
		}
	}
	if p := v.at("pattern"); p.good() {
		if _, err := topicPattern(p.text); err != nil || p.text == "" {
			c.wrongAt(p.path, CodeValue, fmt.Sprintf("%q is no regular expression", cut(p.text)), "")
		}
	}
	if f := v.at("from"); f.good() && f.text != "earliest" && !s.Start.Latest && s.Start.TimeMS <= 0 {
		c.wrongAt(f.path, CodeValue, fmt.Sprintf("%q is no place to begin: earliest, latest, or a time such as 2026-01-02T03:04:05Z", cut(f.text)),
			closest(f.text, []string{"earliest", "latest"}))
	}
	if o := v.at("offsets"); o.good() {
		if v.at("from").set {
			c.wrongAt(o.path, CodeConflict, "from and offsets exclude each other", "")
		}
		if _, err := kafkaOffsets(o.json); err != nil {
			c.wrongAt(o.path, CodeValue, err.Error(), "")
		}
	}
}

// settings says at once what is wrong with the settings of a connection; nothing reaches for it.
func (c *checker) settings(v *value, conn *Connection) {
	settings := v.at(conn.Name).at(conn.Kind)
	if c.env.CheckConnection == nil || !settings.good() || !nameForm.MatchString(conn.Name) {
		return
	}
	if err := c.env.CheckConnection(conn.Name, conn.Kind, conn.Settings); err != nil {
		c.wrongAt(settings.path, CodeValue, err.Error(), "")
	}
}

var topicForm = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)

// connection demands that a name is that of a connection of a kind.
func (c *checker) connection(j *Job, v *value, kind string) {
	if !v.good() {
		return
	}
	var names []string
	for _, k := range j.Connections {
		if k.Kind == kind {
			names = append(names, k.Name)
		}
	}
	if !slices.Contains(names, v.text) {
		c.wrongAt(v.path, CodeReference, fmt.Sprintf("no %s connection %q in connections", kind, cut(v.text)), closest(v.text, names))
	}
}

// kafkaOffsets reads {"topic":{"0":12}}.
func kafkaOffsets(text []byte) (map[string]map[int32]int64, error) {
	var given map[string]map[string]int64
	if err := json.Unmarshal(text, &given); err != nil {
		return nil, fmt.Errorf("offsets are numbers by topic and partition, such as {orders: {0: 1200}}")
	}
	out := map[string]map[int32]int64{}
	for topic, parts := range given {
		out[topic] = map[int32]int64{}
		for key, offset := range parts {
			num, err := strconv.ParseInt(key, 10, 32)
			if err != nil || num < 0 || offset < -2 {
				return nil, fmt.Errorf("partition %.20q of topic %.100q cannot begin at offset %d", key, topic, offset)
			}
			out[topic][int32(num)] = offset
		}
	}
	return out, nil
}
