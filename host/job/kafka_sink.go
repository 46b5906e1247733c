package job

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// KafkaSink publishes to topics of a cluster. All of a job that name one connection publish in one transaction.
type KafkaSink struct {
	Connection string // name of a kafka connection
	// Topic takes the records, or those without a TopicHeader. One of the two is set.
	Topic string
	// TopicHeader names the header that holds the topic of a record, one of Topics.
	TopicHeader string
	Topics      []string
	Compression string // lz4, zstd, none
	Delivery    string // exactly-once, at-least-once
	MaxMessage  int64  // bytes of a record, as Kafka counts them
	// TransactionTimeout is after what time the brokers end a transaction that was left open.
	TransactionTimeout time.Duration
	Formats            Formats
	// Schema and KeySchema are those that values and keys are written by; nil where they are raw.
	Schema, KeySchema *TopicSchema
}

func describeKafkaSink() Field {
	f := Field{
		Name: "kafka", Type: TypeObject, Component: true, Example: "{connection: main, topic: clean}",
		Doc: "Publishes to topics that exist. Exactly once for readers of committed records: what all sinks of one connection take of a batch is one transaction.",
		Fields: []Field{
			{Name: "connection", Type: TypeName, Required: true, Example: "main", Doc: "The connection that names the cluster. Progress hangs on its name."},
			{
				Name: "topic", Type: TypeString, Interpolated: true, Example: `"${env:OUT:-clean}"`,
				Doc: "The topic. Give this, topicHeader, or both: then it takes the records without the header.",
			},
			{
				Name: "topicHeader", Type: TypeString, Example: "topic",
				Doc: "The header that names a record's topic, one of topics. It is taken off the record.",
			},
			{
				Name: "topics", Type: TypeList, Elem: &Field{Type: TypeString, Interpolated: true}, Min: 1, Max: 1000, Interpolated: true,
				Example: "[clean, late]", Doc: "The topics that topicHeader may name.",
			},
			{
				Name: "compression", Type: TypeEnum, Values: []string{"lz4", "zstd", "none"}, Default: "lz4",
				Doc: "How batches of records are compressed. The same for all sinks of a connection.",
			},
			{
				Name: "delivery", Type: TypeEnum, Values: []string{"exactly-once", "at-least-once"}, Default: "exactly-once",
				Doc: "at-least-once does without transactions: a batch that was cut off is published again. The same for all sinks of a connection. Between both goes `wasmill run --allow-changes`.",
			},
			{
				Name: "maxMessage", Type: TypeSize, Default: "1000012B", Min: kib, Max: 64 * mib,
				Doc: "Most bytes of a record, with what Kafka adds; the topics' max.message.bytes must not be less. A record above it does not fit " +
					"the sink: see errors. The same for all sinks of a connection.",
			},
			{
				Name: "transactionTimeout", Type: TypeDuration, Default: "60s", Min: 2 * second, Max: hour, Example: "60s",
				Doc: "After what time the brokers end a transaction that was left open, until when readers of committed records wait. " +
					"Longer than a batch takes to publish, and at most the brokers' transaction.max.timeout.ms. The same for all sinks of a connection.",
			},
		},
	}
	f.Fields = append(f.Fields, describeFormats(
		"How values are written. avro, protobuf and json-schema: in a schema registry's framing. A value that does not fit its schema exactly does not fit the sink: see errors.",
		"How keys are written.")...)
	f.Fields = append(f.Fields, describeTopicSchema("schema", "values"), describeTopicSchema("keySchema", "keys"))
	return f
}

func buildKafkaSink(v *value) *KafkaSink {
	k := &KafkaSink{
		Connection: v.at("connection").text, Topic: v.at("topic").text,
		TopicHeader: v.at("topicHeader").text, Topics: v.at("topics").texts(),
		Compression: v.at("compression").text, Delivery: v.at("delivery").text, MaxMessage: v.at("maxMessage").num,
		TransactionTimeout: milliseconds(v.at("transactionTimeout").num),
		Formats:            buildFormats(v),
	}
	k.Schema = buildTopicSchema(v.at("schema"), k.Formats.Value, k.Topic, "-value")
	k.KeySchema = buildTopicSchema(v.at("keySchema"), k.Formats.Key, k.Topic, "-key")
	return k
}

// kafkaSinks checks each kafka sink, and that those of one connection, which are one target, agree.
func (c *checker) kafkaSinks(j *Job, items []*value) {
	first := map[string]int{} // sink by connection
	for i := range j.Sinks {
		k, v := j.Sinks[i].Kafka, items[i].at("kafka")
		if k == nil || !v.set {
			continue
		}
		c.kafkaSink(j, v, k)
		c.sinkFormats(j, v, k, j.Sinks[i].Name)
		if !v.at("connection").good() {
			continue
		}
		if n, ok := first[k.Connection]; ok {
			c.agree(v, k, &j.Sinks[n])
		} else {
			first[k.Connection] = i
		}
	}
	for i := range j.Sinks {
		name := items[i].at("name")
		if _, taken := first[name.text]; taken && name.good() && j.Sinks[i].Kafka == nil {
			c.wrongAt(name.path, CodeDuplicate, fmt.Sprintf("%q is also the connection that a kafka sink publishes to, and both names stand for what is published", name.text), "")
		}
	}
}

func (c *checker) kafkaSink(j *Job, v *value, k *KafkaSink) {
	c.connection(j, v.at("connection"), "kafka")
	topic, header, topics := v.at("topic"), v.at("topicHeader"), v.at("topics")
	switch {
	case !topic.set && !header.set:
		c.wrongAt(v.path, CodeMissing, "a kafka sink needs a topic, or a topicHeader with topics", "")
	case header.set != topics.set:
		c.wrongAt(v.path, CodeConflict, "topicHeader and topics go together: the header, and the topics that it may name", "")
	case header.good() && k.TopicHeader == "":
		c.wrongAt(header.path, CodeValue, "a header has a name", "")
	}
	c.unique(topics, "topic")
	for _, t := range append([]*value{topic}, topics.items...) {
		c.outputTopic(t)
	}
}

// outputTopic demands a name of a topic that is not the brokers' or ours.
func (c *checker) outputTopic(t *value) {
	switch {
	case !t.set || !t.good():
	case !topicForm.MatchString(t.text) || t.text == "." || t.text == "..":
		c.wrongAt(t.path, CodeValue, fmt.Sprintf("%q is no name of a topic: 1 to 249 letters, digits, dots, dashes and underscores", cut(t.text)), "")
	case strings.HasPrefix(t.text, "__"):
		c.wrongAt(t.path, CodeValue, fmt.Sprintf("%q: topics that begin with two underscores are not for output", cut(t.text)), "")
	}
}

// agree demands of a sink what holds for the whole transaction.
func (c *checker) agree(v *value, k *KafkaSink, other *Sink) {
	var odd []string
	for _, s := range []struct {
		name string
		same bool
	}{
		{"compression", k.Compression == other.Kafka.Compression},
		{"delivery", k.Delivery == other.Kafka.Delivery},
		{"maxMessage", k.MaxMessage == other.Kafka.MaxMessage},
		{"transactionTimeout", k.TransactionTimeout == other.Kafka.TransactionTimeout},
	} {
		if !s.same && !v.at(s.name).bad {
			odd = append(odd, s.name)
		}
	}
	if len(odd) > 0 {
		c.wrongAt(v.at(slices.Min(odd)).path, CodeConflict, fmt.Sprintf("sink %s publishes to the same connection with another %s: sinks of one connection share a transaction, so give each the same",
			other.Name, strings.Join(odd, " and ")), "")
	}
}
