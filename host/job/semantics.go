package job

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// semantics checks what no field can say alone. It looks only at values that are right in themselves.
func (c *checker) semantics(j *Job, v *value) {
	spec := v.at("spec")
	c.trigger(j, spec.at("trigger"))
	g := c.graph(j, spec)
	for i, s := range spec.at("sources").items {
		c.source(j, s, &j.Sources[i])
		c.eventTime(s.at("eventTime"), &j.Sources[i], j.Trigger.AvailableNow)
		if g := j.Sources[i].Generator; g != nil && !s.at("generator").bad && j.Trigger.AvailableNow && g.Rate == 0 && g.Records == 0 {
			c.wrongAt(s.at("generator").path, CodeConflict, "with availableNow a generator needs records or a rate: it would never end", "")
		}
	}
	for i, t := range spec.at("transforms").items {
		c.transform(t, &j.Transforms[i])
	}
	for i, s := range spec.at("sinks").items {
		c.sink(j, s, &j.Sinks[i])
	}
	c.kafkaSinks(j, spec.at("sinks").items)
	c.tableSinks(j, spec.at("sinks").items)
	c.kafkaLoops(j, spec)
	for i := range j.Connections {
		c.settings(spec.at("connections"), &j.Connections[i])
	}
	c.errorPolicy(j, spec, g)
	c.paths(j, spec)
}

func (c *checker) trigger(j *Job, v *value) {
	if v.at("interval").good() && v.at("availableNow").good() && v.at("availableNow").num == 1 {
		c.wrongAt(v.at("interval").path, CodeConflict, "interval and availableNow exclude each other", "")
	}
	least, delay := v.at("minRecords"), v.at("maxDelay")
	switch {
	case v.bad:
	case least.good() && least.num > 0 && !delay.set:
		c.wrongAt(least.path, CodeMissing, "minRecords needs maxDelay: how long what has come waits for more, at most", "")
	case delay.good() && (!least.set || least.good() && least.num == 0):
		c.wrongAt(delay.path, CodeMissing, "maxDelay needs minRecords: how many records a batch waits for", "")
	case least.good() && least.num > 0 && v.at("availableNow").num == 1:
		c.wrongAt(least.path, CodeConflict, "with availableNow no batch waits for more", "")
	case least.good() && least.num > j.mostRecords() && j.mostRecords() > 0:
		c.wrongAt(least.path, CodeConflict, fmt.Sprintf("no batch ever has so many: the sources' batch.maxRecords are %d together", j.mostRecords()), "")
	}
}

func (c *checker) source(j *Job, v *value, s *Source) {
	if k := v.at("kafka"); k.set && s.Kafka != nil {
		c.kafkaSource(j, k, s.Kafka)
	}
	if f := v.at("files"); f.set && s.Files != nil {
		c.filesSource(f, s.Files)
	}
	if d := v.at("delta"); d.set && s.Delta != nil {
		c.deltaSource(d, s)
	}
	if n := v.at("generator").at("nexmark"); n.good() && s.Generator != nil && s.Generator.Nexmark == nil {
		c.wrongAt(n.path, CodeConflict, "nexmark is for kind nexmark", "")
	}
	for i, a := range s.Attach {
		item := v.at("attach").items[i]
		if slices.Contains(s.Attach[:i], a) {
			c.wrongAt(item.path, CodeDuplicate, fmt.Sprintf("%q is already in the list", cut(a)), "")
		} else if (s.Files != nil || s.Delta != nil) && item.good() && a != "path" {
			c.wrongAt(item.path, CodeConflict, "files have no "+a+"; they can attach their path", "")
		} else if s.Generator != nil && item.good() {
			c.wrongAt(item.path, CodeConflict, "a generator has no "+a, "")
		} else if s.Kafka != nil && item.good() && a == "path" {
			c.wrongAt(item.path, CodeConflict, "a topic has no path; it can attach topic and partition", "")
		}
	}
}

func (c *checker) filesSource(v *value, f *FilesSource) {
	if p := v.at("path"); p.good() {
		if why := badGlob(f.Path); why != "" {
			c.wrongAt(p.path, CodeValue, why, "")
		}
	}
	if f.Format == "parquet" && v.at("compression").good() && f.Compression != "auto" {
		c.wrongAt(v.at("compression").path, CodeConflict, "parquet files say their compression themselves; remove this", "")
	}
	c.csv(v.at("csv"), &f.CSV, v.at("format"))
	if cols := v.at("csv").at("columns"); cols.good() {
		// Names given and nothing said of a header line: the first line is data.
		f.CSV.Header = f.CSV.Header && v.at("csv").at("header").set
		c.unique(cols, "column")
	}
}

func (c *checker) csv(v *value, csv *CSV, format *value) {
	if v.set && format.good() && format.text != "csv" {
		c.wrongAt(v.path, CodeConflict, "csv is for format: csv, and the format is "+format.text, "")
	}
	d := v.at("delimiter")
	if !d.good() {
		return
	}
	if b := d.text; len(b) != 1 || b == `"` || b != "\t" && (b[0] < ' ' || b[0] > '~') {
		c.wrongAt(d.path, CodeValue, fmt.Sprintf("%q is no delimiter; it is a tab or one printable ASCII character other than a quote", cut(b)), "")
		csv.Delimiter = ','
	}
}

func (c *checker) unique(list *value, what string) {
	seen := map[string]bool{}
	for _, i := range list.items {
		if seen[i.text] && i.good() {
			c.wrongAt(i.path, CodeDuplicate, fmt.Sprintf("%s %q is already in the list", what, cut(i.text)), "")
		}
		seen[i.text] = true
	}
}

var (
	digestForm  = regexp.MustCompile(`^[0-9a-f]{64}$`)
	packageForm = regexp.MustCompile(`^[a-z][a-z0-9_/-]{0,126}@[0-9A-Za-z][0-9A-Za-z.+_-]{0,62}$`)
)

func (c *checker) transform(v *value, t *Transform) {
	if m := v.at("module"); m.good() {
		c.module(m, &t.Module)
	}
	c.limits(v.at("limits"))
	c.keys(v.at("from").items)
}

func (c *checker) module(v *value, m *Module) {
	switch {
	case m.Stock != "" || strings.HasPrefix(m.Ref, "stock:"):
		if !nameForm.MatchString(m.Stock) {
			c.wrongAt(v.path, CodeValue, fmt.Sprintf("%q: after stock: comes a name", cut(m.Ref)), "")
			return
		}
		if !slices.Contains(c.env.Stock, m.Stock) {
			suggestion := closest(m.Stock, c.env.Stock)
			message := fmt.Sprintf("no transform called %q comes with this version of wasmill", cut(m.Stock))
			if suggestion == "" && len(c.env.Stock) > 0 {
				message += "; there are " + strings.Join(c.env.Stock, ", ")
			}
			c.wrongAt(v.path, CodeReference, message, suggestion)
		}
	case strings.HasPrefix(m.Ref, "sha256:"):
		if !digestForm.MatchString(m.SHA256) {
			c.wrongAt(v.path, CodeValue, "after sha256: come 64 hex digits in lower case", "")
		}
	case m.Package != "":
		c.wrongAt(v.path, CodeUnsupported, "modules of a registry (name@version) are not available in this version; give a path or sha256:<digest>", "")
	case m.Path == "":
		suggestion := ""
		if m.Ref != "" {
			suggestion = fmt.Sprintf("%q", "./"+cut(m.Ref)+".wasm")
		}
		c.wrongAt(v.path, CodeValue, fmt.Sprintf("%q is no module; write a path that ends with .wasm, or sha256:<digest>", cut(m.Ref)), suggestion)
	}
}

func (c *checker) sink(j *Job, v *value, s *Sink) {
	c.mode(v, s)
	if v.at("files").set && s.Files != nil {
		c.filesSink(j, v.at("files"), s)
	}
}

func (c *checker) filesSink(j *Job, v *value, sink *Sink) {
	s := sink.Files
	if p := v.at("path"); p.good() && isGlob(p.text) {
		c.wrongAt(p.path, CodeValue, "a sink's path is a directory, without *, ? and [", "")
	}
	if f := v.at("format"); f.good() && f.text != "jsonl" && !v.at("schema").set && !j.mayTakeRows(sink) {
		c.wrongAt(v.path, CodeMissing, f.text+noColumns, "")
	}
	if v.at("compression").good() && s.Compression == "snappy" && s.Format != "parquet" {
		c.wrongAt(v.at("compression").path, CodeConflict, "snappy is for parquet; "+s.Format+" takes zstd, gzip or none", "")
	}
	c.csv(v.at("csv"), &s.CSV, v.at("format"))
	by, schema := v.at("partitionBy"), v.at("schema")
	if by.good() && !schema.set && s.Format == "jsonl" {
		c.wrongAt(by.path, CodeMissing, "partitionBy needs a schema that has the columns", "")
	}
	c.partitionColumns(v, s.Schema, s.PartitionBy)
}

const noColumns = " needs a schema, for example schema: {carrier: string, delay: int32}"

// partitionColumns checks what a sink is partitioned by, against its schema if it has one.
func (c *checker) partitionColumns(v *value, columns []Column, by []string) {
	list, schema := v.at("partitionBy"), v.at("schema")
	if !list.good() {
		return
	}
	c.unique(list, "column")
	if schema.good() {
		c.partitionedBy(list.path, columns, by)
	}
}

// partitionedBy checks that columns of a schema can be those that rows are partitioned by.
func (c *checker) partitionedBy(path string, columns []Column, by []string) {
	names := columnNames(columns)
	for n, name := range by {
		at := fmt.Sprintf("%s[%d]", path, n)
		i := slices.Index(names, name)
		if i < 0 {
			c.wrongAt(at, CodeReference, fmt.Sprintf("no column %q in the schema", cut(name)), closest(name, names))
			continue
		}
		switch k := columns[i].Type.Kind; k {
		case "float", "double", "binary", "list", "map", "struct":
			c.wrongAt(at, CodeConflict, fmt.Sprintf("column %q is a %s, which makes no folder name; use text, integers, decimals, dates, timestamps or booleans", cut(name), k), "")
		}
	}
	if len(by) >= len(names) {
		c.wrongAt(path, CodeConflict, "at least one column must remain that is not in partitionBy", "")
	}
}
