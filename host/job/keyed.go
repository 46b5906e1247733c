package job

import "fmt"

// keys checks the keys of a stage's inputs: all of them have one, or none.
func (c *checker) keys(from []*value) {
	keyed, bare := 0, -1
	for i, in := range from {
		k := in.at("keyBy")
		switch {
		case k.set:
			keyed++
			c.keyBy(k)
		case bare < 0:
			bare = i
		}
	}
	if keyed > 0 && bare >= 0 {
		c.wrongAt(from[bare].path, CodeConflict, fmt.Sprintf("%s has no keyBy, and other entries have: give each entry of a keyed stage one, as {input: %s, keyBy: {json: /id}}",
			cut(from[bare].at("input").text), cut(from[bare].at("input").text)), "")
	}
}

func (c *checker) keyBy(v *value) {
	if v.bad || v.fields == nil {
		return
	}
	given := 0
	for _, k := range []string{"key", "header", "json"} {
		if v.at(k).set {
			given++
		}
	}
	if given != 1 {
		c.wrongAt(v.path, CodeConflict, "keyBy takes exactly one of key: true, header: <name>, json: <pointer or list>", "")
	}
	if k := v.at("key"); k.good() && k.num == 0 {
		c.wrongAt(k.path, CodeValue, "key can only be true", "")
	}
	if h := v.at("header"); h.good() && h.text == "" {
		c.wrongAt(h.path, CodeValue, "a header has a name", "")
	}
}

// eventTime checks where a source's event time stands. Topics and the generator give records a time of their own, which
// is what counts when no pointer is given; lines and rows of files have none.
func (c *checker) eventTime(v *value, s *Source, availableNow bool) {
	if !v.good() || v.fields == nil || s.EventTime == nil {
		return
	}
	json, stamp, own := v.at("json"), v.at("timestamp"), s.Kafka != nil || s.Generator != nil
	switch {
	case json.set && stamp.set && !stamp.bad:
		c.wrongAt(stamp.path, CodeConflict, "json and timestamp exclude each other: the event time stands in the value, or it is the record's own", "")
	case stamp.good() && stamp.num == 0:
		c.wrongAt(stamp.path, CodeValue, "timestamp can only be true", "")
	case stamp.good() && !own:
		c.wrongAt(stamp.path, CodeConflict, "what is read from files and tables has no timestamp of its own; give json: <pointer> to where it stands in the value", "")
	case !json.set && !own:
		c.wrongAt(v.path, CodeMissing, "json is missing, for example json: /time_hour", "")
	case !json.set:
		s.EventTime.Timestamp = own
	}
	if u := v.at("unit"); u.good() && !json.set {
		c.wrongAt(u.path, CodeConflict, "unit says how the integer is counted that json points to, and there is no json", "")
	}
	if e := v.at("complete"); e.good() && e.num == 1 {
		c.complete(e, s, availableNow)
	}
}

// complete demands that a source has an end.
func (c *checker) complete(v *value, s *Source, availableNow bool) {
	switch {
	case s.Kafka != nil:
		c.wrongAt(v.path, CodeConflict, "a topic has no end: complete is for files, tables and the generator; idle closes windows when nothing comes", "")
	case s.Delta != nil && !availableNow:
		c.wrongAt(v.path, CodeConflict, "without trigger: {availableNow: true} the table may get more rows at any time, so the input is never complete", "")
	case s.Files != nil && !availableNow:
		c.wrongAt(v.path, CodeConflict, "without trigger: {availableNow: true} more files may come at any time, so the input is never complete", "")
	case s.Generator != nil && s.Generator.Records == 0:
		c.wrongAt(v.path, CodeConflict, "a generator without records has no end; give it records", "")
	}
}

// mode checks that a sink of its kind can do what its mode says.
func (c *checker) mode(v *value, s *Sink) {
	m := v.at("mode")
	if !m.good() {
		return
	}
	switch {
	case s.table() != nil && s.Mode == ModeChangelog:
		c.wrongAt(m.path, CodeConflict, "a table takes append, or upsert with a key; changelog is for kafka, stdout and files of format jsonl", "")
	case s.Files == nil:
	case s.Mode == ModeUpsert:
		c.wrongAt(m.path, CodeConflict, "files that are written cannot change, so rows in them have no upsert; files of format jsonl take changelog, kafka and stdout take upsert", "")
	case s.Mode == ModeChangelog && v.at("files").at("format").good() && s.Files.Format != "jsonl":
		c.wrongAt(m.path, CodeConflict, "mode changelog is for files of format jsonl, and the format is "+s.Files.Format, "")
	}
}
