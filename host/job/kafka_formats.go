package job

import (
	"fmt"
	"slices"
)

// Formats says how keys and values of a topic are written: raw, avro, protobuf or json-schema.
type Formats struct {
	Value, Key string
	// Registry is the name of a schemaRegistry connection, "" when both are raw.
	Registry string
}

// Framed reports whether one of them is in a schema registry's framing.
func (f Formats) Framed() bool { return f.Value != formatRaw || f.Key != formatRaw }

// TopicSchema says by which schema of a registry keys or values are written.
type TopicSchema struct {
	// Subject is where the registry has it.
	Subject string
	// Version of the subject; 0 is the newest when the sink first needs it. It is 0 where Text is set.
	Version int64
	// Text is the schema itself, which must be under the subject; Register registers it when it is not.
	Text     string
	Register bool
	// Message is the full name of the Protobuf message, "" the file's first.
	Message string
}

const formatRaw = "raw"

var topicFormats = []string{formatRaw, "avro", "protobuf", "json-schema"}

func describeFormats(doc, keyDoc string) []Field {
	return []Field{
		{Name: "format", Type: TypeEnum, Values: topicFormats, Default: formatRaw, Example: "avro", Doc: doc},
		{Name: "keyFormat", Type: TypeEnum, Values: topicFormats, Default: formatRaw, Doc: keyDoc},
		{Name: "registry", Type: TypeName, Example: "schemas", Doc: "The schemaRegistry connection. Any format but raw needs it."},
	}
}

func describeTopicSchema(name, what string) Field {
	return Field{
		Name: name, Type: TypeObject, Example: "{subject: clean-value, version: 3}",
		Doc: "By which schema " + what + " are written. What is found first is kept in the checkpoint and used until this changes.",
		Fields: []Field{
			{
				Name: "subject", Type: TypeString, Interpolated: true, Example: "clean-value",
				Doc: "Where the registry has the schema. Without it: <topic>-value or <topic>-key, of topic.",
			},
			{
				Name: "version", Type: TypeInt, Default: "0", Max: 1<<31 - 1, Example: "3",
				Doc: "The version of the subject. 0 is the newest when the sink first needs it; a newer one is taken when its number is written here.",
			},
			{Name: "text", Type: TypeString, Doc: "The schema itself, instead of a version. It must be registered under the subject, and needs no other schemas."},
			{Name: "autoRegister", Type: TypeBool, Default: "false", Doc: "Registers text under the subject when it is not there."},
			{Name: "message", Type: TypeString, Example: "shop.Order", Doc: "protobuf: the full name of the message. Without it: the file's first."},
		},
	}
}

func buildFormats(v *value) Formats {
	return Formats{Value: v.at("format").text, Key: v.at("keyFormat").text, Registry: v.at("registry").text}
}

// buildTopicSchema returns nil when the format needs no schema.
func buildTopicSchema(v *value, format, topic, suffix string) *TopicSchema {
	if format == formatRaw {
		return nil
	}
	s := &TopicSchema{
		Subject: v.at("subject").text, Version: v.at("version").num, Text: v.at("text").text,
		Register: v.at("autoRegister").num != 0, Message: v.at("message").text,
	}
	if s.Subject == "" && topic != "" {
		s.Subject = topic + suffix
	}
	return s
}

// formats checks how a kafka source or sink reads or writes.
func (c *checker) formats(j *Job, v *value, f Formats) {
	registry := v.at("registry")
	if v.at("format").bad || v.at("keyFormat").bad {
		return
	}
	switch {
	case f.Framed() && !registry.set:
		c.wrongAt(v.path, CodeMissing, "formats other than raw need a registry: the name of a schemaRegistry connection", "")
	case !f.Framed() && registry.set:
		c.wrongAt(registry.path, CodeConflict, "nothing is read or written by schemas of the registry: format and keyFormat are raw", "")
	default:
		c.connection(j, registry, "schemaRegistry")
	}
}

func (c *checker) sinkFormats(j *Job, v *value, k *KafkaSink, name string) {
	c.formats(j, v, k.Formats)
	if k.Formats.Framed() && name == j.Errors.DeadLetters && name != "" {
		c.wrongAt(v.path, CodeConflict, "the sink for dead letters writes them as they are: its format and keyFormat are raw", "")
	}
	c.topicSchema(v, v.at("schema"), k.Formats.Value, k.Schema)
	c.topicSchema(v, v.at("keySchema"), k.Formats.Key, k.KeySchema)
}

func (c *checker) topicSchema(sink, v *value, format string, s *TopicSchema) {
	if s == nil {
		if v.set {
			c.wrongAt(v.path, CodeConflict, "raw bytes have no schema", "")
		}
		return
	}
	text := v.at("text")
	switch {
	case s.Subject == "" && !sink.at("topic").bad:
		c.wrongAt(sink.path, CodeMissing, "without a topic of its own the sink needs the subject of its schema", "")
	case text.set && v.at("version").set:
		c.wrongAt(text.path, CodeConflict, "text and version exclude each other", "")
	case text.set && s.Text == "":
		c.wrongAt(text.path, CodeValue, "the schema is empty", "")
	case s.Register && !text.set:
		c.wrongAt(v.at("autoRegister").path, CodeConflict, "autoRegister registers text, and there is none", "")
	case s.Message != "" && format != "protobuf":
		c.wrongAt(v.at("message").path, CodeConflict, "only protobuf schemas have several messages", "")
	}
}

// The members of a revision about formats.
type revisionFormats struct {
	Value     string              `json:"value"`
	Key       string              `json:"key"`
	Schema    *revisionFormSchema `json:"schema,omitempty"`
	KeySchema *revisionFormSchema `json:"keySchema,omitempty"`
}

// revisionFormSchema holds no names of subjects, which may come from outside, and no texts.
type revisionFormSchema struct {
	Subject string `json:"subject"` // sha256
	Version int64  `json:"version,omitempty"`
	Text    string `json:"text,omitempty"` // sha256
	Message string `json:"message,omitempty"`
}

// reviseFormats returns nil for raw bytes, so that jobs without other formats keep their revision.
func reviseFormats(f Formats, schema, key *TopicSchema) *revisionFormats {
	if !f.Framed() {
		return nil
	}
	return &revisionFormats{Value: f.Value, Key: f.Key, Schema: reviseTopicSchema(schema), KeySchema: reviseTopicSchema(key)}
}

func reviseTopicSchema(s *TopicSchema) *revisionFormSchema {
	if s == nil {
		return nil
	}
	r := &revisionFormSchema{Subject: digestOf([]string{s.Subject}), Version: s.Version, Message: s.Message}
	if s.Text != "" {
		r.Text = digestOf([]string{s.Text})
	}
	return r
}

// formats says what a change of formats does.
func (d *differ) formats(path string, a, b *revisionFormats, what string) {
	word := func(r *revisionFormats) string {
		if r == nil {
			return formatRaw
		}
		if r.Key != formatRaw {
			return fmt.Sprintf("%s with keys of %s", r.Value, r.Key)
		}
		return r.Value
	}
	if x, y := word(a), word(b); x != y {
		d.ok(path, fmt.Sprintf("%s becomes %s, for %s", x, y, what))
		return
	}
	if !slices.Equal(schemasOf(a), schemasOf(b)) {
		d.ok(path, "another schema, for "+what)
	}
}

func schemasOf(r *revisionFormats) []revisionFormSchema {
	out := make([]revisionFormSchema, 2)
	if r == nil {
		return out
	}
	for i, s := range []*revisionFormSchema{r.Schema, r.KeySchema} {
		if s != nil {
			out[i] = *s
		}
	}
	return out
}
