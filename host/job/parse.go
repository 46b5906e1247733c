package job

import (
	"strings"
)

// Parse reads a job file. name is its path, for messages.
//
// When anything is wrong the error is an *Errors with all of it. When the file is right but asks for what this version
// cannot do (Errors.Unsupported), the Job is returned beside the error; otherwise it is nil.
func Parse(name string, text []byte, env Env) (*Job, error) {
	c := &checker{env: env, places: map[string]Pos{}}
	root := load(text, &c.mistakes)
	if root == nil {
		return nil, c.errors(name)
	}
	f := Describe()
	c.places[""] = at(root)
	v := c.check(root, &f, "")
	j := c.build(v, &f)
	c.semantics(j, v)
	j.File, j.places = name, c.places
	if err := c.errors(name); err != nil {
		if err.Unsupported() {
			return j, err
		}
		return nil, err
	}
	return j, nil
}

// build makes the typed job. What is wrong in v is left as it is: the job is then thrown away.
func (c *checker) build(v *value, f *Field) *Job {
	meta, spec := v.at("metadata"), v.at("spec")
	fs := f.field("spec")
	j := &Job{
		Dir:        c.env.Dir,
		Name:       meta.at("name").text,
		Labels:     map[string]string{},
		Checkpoint: spec.at("checkpoint").text,
		Trigger: Trigger{
			Interval:     milliseconds(spec.at("trigger").at("interval").num),
			AvailableNow: spec.at("trigger").at("availableNow").num == 1,
			MinRecords:   spec.at("trigger").at("minRecords").num, MaxDelay: milliseconds(spec.at("trigger").at("maxDelay").num),
		},
		Lanes: int(spec.at("lanes").num),
		Errors: ErrorPolicy{
			Policy:      spec.at("errors").at("policy").text,
			DeadLetters: spec.at("errors").at("deadLetters").text,
			Max:         spec.at("errors").at("max").num,
		},
		Spool: spec.at("spool").text,
		Retention: Retention{
			Batches: spec.at("retention").at("batches").num,
			Age:     milliseconds(spec.at("retention").at("age").num),
		},
	}
	for _, k := range meta.at("labels").names {
		j.Labels[k] = meta.at("labels").fields[k].text
	}
	for _, s := range spec.at("sources").items {
		j.Sources = append(j.Sources, buildSource(s, fs.field("sources").Elem, j.Trigger.AvailableNow))
	}
	for _, t := range spec.at("transforms").items {
		j.Transforms = append(j.Transforms, c.buildTransform(t))
	}
	for _, s := range spec.at("sinks").items {
		j.Sinks = append(j.Sinks, buildSink(s, fs.field("sinks").Elem))
	}
	for _, k := range spec.at("connections").names {
		conn := spec.at("connections").fields[k]
		for _, kind := range conn.names {
			j.Connections = append(j.Connections, Connection{Name: k, Kind: kind, Settings: conn.at(kind).json})
		}
	}
	return j
}

func buildSource(v *value, f *Field, availableNow bool) Source {
	s := Source{
		Name:   v.at("name").text,
		Batch:  Batch{MaxRecords: v.at("batch").at("maxRecords").num, MaxBytes: v.at("batch").at("maxBytes").num},
		Attach: v.at("attach").texts(),
	}
	if e := v.at("eventTime"); e.set {
		s.EventTime = &EventTime{
			JSON: e.at("json").text, Unit: e.at("unit").text, Timestamp: e.at("timestamp").num == 1,
			Lateness: milliseconds(e.at("lateness").num), Idle: milliseconds(e.at("idle").num), Complete: e.at("complete").num == 1,
		}
	}
	switch v.kind(f) {
	case "files":
		s.Files = buildFilesSource(v.at("files"), availableNow)
	case "generator":
		s.Generator = buildGenerator(v.at("generator"))
	case "kafka":
		s.Kafka = buildKafkaSource(v.at("kafka"))
	case "delta":
		s.Delta = buildDeltaSource(v.at("delta"))
	}
	return s
}

func buildGenerator(v *value) *GeneratorSource {
	g := &GeneratorSource{Kind: v.at("kind").text, Seed: uint64(v.at("seed").num), Rate: v.at("rate").num, Records: v.at("records").num}
	if g.Kind == "nexmark" {
		n := v.at("nexmark")
		g.Nexmark = &Nexmark{
			Only: n.at("only").text, Flat: n.at("flat").num == 1, EventRate: n.at("eventRate").num, BaseMS: n.at("baseTime").num,
			OutOfOrder: n.at("outOfOrder").num,
		}
	}
	return g
}

func buildFilesSource(v *value, availableNow bool) *FilesSource {
	s := &FilesSource{
		Path: v.at("path").text, Format: v.at("format").text, Compression: v.at("compression").text,
		CSV: buildCSV(v.at("csv")), Settle: milliseconds(v.at("settle").num), OnDataLoss: v.at("onDataLoss").text,
	}
	if availableNow && !v.at("settle").set {
		s.Settle = 0
	}
	return s
}

func buildCSV(v *value) CSV {
	c := CSV{Header: v.at("header").num == 1, Columns: v.at("columns").texts()}
	if d := v.at("delimiter").text; d != "" {
		c.Delimiter = d[0]
	}
	return c
}

func (c *checker) buildTransform(v *value) Transform {
	t := Transform{
		Name:   v.at("name").text,
		Module: buildModule(v.at("module").text, c.env.Dir),
		Config: v.at("config").json,
	}
	t.Limits = buildLimits(v.at("limits"), t.Module.Stock != "")
	for _, i := range v.at("from").items {
		t.From = append(t.From, buildInput(i))
	}
	return t
}

func buildInput(v *value) Input {
	in := inputOf(v.at("input").text)
	if k := v.at("keyBy"); k.set {
		in.KeyBy = &KeyBy{Key: k.at("key").num == 1, Header: k.at("header").text, JSON: k.at("json").texts()}
	}
	return in
}

// buildModule tells the kinds of references apart: name@version of a registry; a path has a separator or ends with .wasm.
func buildModule(ref, dir string) Module {
	m := Module{Ref: ref}
	switch {
	case strings.HasPrefix(ref, "sha256:"):
		m.SHA256 = strings.TrimPrefix(ref, "sha256:")
	case strings.HasPrefix(ref, "stock:"):
		m.Stock = strings.TrimPrefix(ref, "stock:")
	case packageForm.MatchString(ref) && !strings.HasSuffix(ref, ".wasm"):
		m.Package = ref
	case strings.ContainsAny(ref, `/\`) || strings.HasSuffix(ref, ".wasm"):
		m.Path = inDir(dir, ref)
	}
	return m
}

func buildSink(v *value, f *Field) Sink {
	s := Sink{Name: v.at("name").text, Mode: v.at("mode").text}
	for _, i := range v.at("from").items {
		s.From = append(s.From, inputOf(i.text))
	}
	switch v.kind(f) {
	case "files":
		s.Files = buildFilesSink(v.at("files"))
	case "stdout":
		s.Stdout = &StdoutSink{Format: v.at("stdout").at("format").text}
	case "kafka":
		s.Kafka = buildKafkaSink(v.at("kafka"))
	case "delta":
		s.Delta = buildDeltaSink(v.at("delta"))
	case "postgres", "sqlite":
		s.SQL = buildSQLSink(v.at(v.kind(f)), v.kind(f))
	}
	return s
}

func buildFilesSink(v *value) *FilesSink {
	s := &FilesSink{
		Path: v.at("path").text, Format: v.at("format").text, Schema: v.at("schema").columns,
		PartitionBy: v.at("partitionBy").texts(), Compression: v.at("compression").text, CSV: buildCSV(v.at("csv")),
		MaxPartRows: v.at("maxPartRows").num, MaxPartSize: v.at("maxPartSize").num, Retention: milliseconds(v.at("retention").num),
	}
	if s.Compression == "" {
		s.Compression = "none"
		if s.Format == "parquet" {
			s.Compression = "zstd"
		}
	}
	return s
}
