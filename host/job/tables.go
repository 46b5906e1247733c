package job

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/wasmill/wasmill/host/rows"
)

// TableSink is what sinks of tables have in common.
type TableSink struct {
	// Schema is in the order of the job file. Nil: the columns of the binary rows that the sink takes, and without those the
	// table's own, as it was when the job first ran.
	Schema []Column
	// Key are the columns that tell rows apart, for mode upsert.
	Key []string
}

// DeltaSink writes a Delta table.
type DeltaSink struct {
	TableSink
	Path        string
	PartitionBy []string
	Compression string // zstd, snappy, gzip, none
	// AddColumns lets the table get columns of the schema that it does not have.
	AddColumns         bool
	CheckpointInterval int64 // commits from one checkpoint of the table's log to the next
	MaxPartRows        int64
	MaxPartSize        int64 // bytes of rows before compression
}

// SQLSink writes a table of a database. All of a job that name one connection publish in one transaction.
type SQLSink struct {
	TableSink
	Kind       string // postgres, sqlite
	Connection string // name of a connection of that kind
	Table      string // schema.table or table; "" with a statement of mode append
	Create     bool   // the table is made from the schema where it is not there
	// Statement replaces the INSERT: SQL with a parameter :column for each column that it takes.
	Statement string
	// AtLeastOnce leaves the epoch row out, so that a batch may be written twice.
	AtLeastOnce bool
}

// table is what the sink has in common with other sinks of tables, nil for one that has no tables.
func (s *Sink) table() *TableSink {
	switch {
	case s.Delta != nil:
		return &s.Delta.TableSink
	case s.SQL != nil:
		return &s.SQL.TableSink
	}
	return nil
}

// Columns is the sink's schema, nil without one.
func (s *Sink) Columns() []Column {
	if t := s.table(); t != nil {
		return t.Schema
	}
	if s.Files != nil {
		return s.Files.Schema
	}
	return nil
}

// mayTakeColumns reports whether the sink has no columns and takes those of binary rows.
func (s *Sink) mayTakeColumns() bool {
	return s.Columns() == nil && (s.table() != nil || s.Files != nil)
}

// needsColumns reports whether the sink writes columns and does not know yet which.
func (s *Sink) needsColumns() bool {
	return s.mayTakeColumns() && (s.Files == nil || s.Files.Format != "jsonl")
}

// SetColumns gives a sink that has no schema in the job file the columns of its rows or of its table; nil takes them away.
func (s *Sink) SetColumns(columns []Column) {
	s.found = columns != nil
	switch t := s.table(); {
	case t != nil:
		t.Schema = columns
	case s.Files != nil:
		s.Files.Schema = columns
	}
}

// ColumnsOf are columns as a job file would have them.
func ColumnsOf(columns []rows.Column) []Column {
	out := make([]Column, 0, len(columns))
	for _, c := range columns {
		out = append(out, Column{Name: c.Name, Type: columnTypeOf(c.Type)})
	}
	return out
}

// TakesTableSchema reports whether the sink's schema is for its table to say, unless it takes binary rows.
func (s *Sink) TakesTableSchema() bool {
	t := s.table()
	return t != nil && t.Schema == nil
}

func describeTableFields(example string) []Field {
	return []Field{
		{
			Name: "schema", Type: TypeColumns, Example: example,
			Doc: "The columns in order, name: type. Without it those of the binary rows that the sink takes. Without those the table's own, as it is when the " +
				"job first runs; the checkpoint keeps it until `wasmill run --update <sink>`.",
		},
		{
			Name: "key", Type: TypeList, Elem: &Field{Type: TypeString}, Min: 1, Max: 16, Example: "[customer, window_start]",
			Doc: "The columns that tell rows apart, for mode upsert. A record without a value deletes the row whose key is the record's key: the text of one column, " +
				"or a JSON array of several, as keyBy makes it.",
		},
	}
}

func describeDeltaSink() Field {
	f := Field{
		Name: "delta", Type: TypeObject, Component: true, Example: `{path: ./lake, schema: {id: int64, amount: "decimal(9,2)"}}`,
		Doc: "Writes a Delta table, which is made when there is none. Exactly once, also beside other writers: a batch is one entry of the table's log.",
		Fields: []Field{
			{Name: "path", Type: TypePath, Required: true, Interpolated: true, Example: "./lake", Doc: "The table's directory."},
		},
	}
	f.Fields = append(f.Fields, describeTableFields(`{id: int64, at: timestamp, amount: "decimal(9,2)"}`)...)
	f.Fields = append(
		f.Fields,
		Field{
			Name: "partitionBy", Type: TypeList, Elem: &Field{Type: TypeString}, Max: 16, Example: "[carrier]",
			Doc: "Columns that the table is partitioned by. A table that is there has its own, and must have these if they are given.",
		},
		Field{
			Name: "schemaEvolution", Type: TypeEnum, Values: []string{"none", "add-columns"}, Default: "none",
			Doc: "What happens when the schema has columns that the table has not: the job stops, or they are added. Nothing else of a table is ever changed.",
		},
		Field{
			Name: "checkpointInterval", Type: TypeInt, Default: "100", Min: 1, Max: 1_000_000,
			Doc: "After how many entries of the log a checkpoint of it is written, for readers to begin at.",
		},
		Field{Name: "compression", Type: TypeEnum, Values: []string{"zstd", "snappy", "gzip", "none"}, Default: "zstd", Doc: "How the data files are compressed."},
		Field{Name: "maxPartRows", Type: TypeInt, Default: "5000000", Min: 1, Max: math.MaxInt32, Doc: "Most rows in a file."},
		Field{
			Name: "maxPartSize", Type: TypeSize, Default: "128MiB", Min: 64 * kib, Max: 4 * gib,
			Doc: "Most bytes of rows in a file, before compression.",
		},
	)
	return f
}

func describeSQLSink(kind, doc string) Field {
	f := Field{
		Name: kind, Type: TypeObject, Component: true, Example: "{connection: db, table: orders}", Doc: doc,
		Fields: []Field{
			{Name: "connection", Type: TypeName, Required: true, Example: "db", Doc: "The connection that names the database. Progress hangs on its name."},
			{Name: "table", Type: TypeString, Interpolated: true, Example: "orders", Doc: "The table: its name, or schema.name."},
		},
	}
	f.Fields = append(f.Fields, describeTableFields(`{id: int64, at: timestamp, amount: "decimal(9,2)"}`)...)
	f.Fields = append(
		f.Fields,
		Field{Name: "createTable", Type: TypeBool, Default: "false", Example: "true", Doc: "Makes the table from the schema when there is none, but not again one that is gone with what the job has published in it."},
		Field{
			Name: "statement", Type: TypeString, Example: `"insert into orders (id, amount) values (:id, :amount) on conflict do nothing"`,
			Doc: "SQL that is carried out for each row instead of an INSERT, with :column for the value of a column. Needs a schema.",
		},
		Field{
			Name: "idempotence", Type: TypeEnum, Values: []string{"epoch", "none"}, Default: "epoch",
			Doc: "epoch keeps the number of the last batch in the table wasmill_epoch, in the transaction that writes the rows: exactly once. none does without: " +
				"a batch that is cut off may be written twice. The same for all sinks of a connection. Between both goes `wasmill run --allow-changes`.",
		},
	)
	return f
}

func buildTableSink(v *value) TableSink {
	return TableSink{Schema: v.at("schema").columns, Key: v.at("key").texts()}
}

func buildDeltaSink(v *value) *DeltaSink {
	return &DeltaSink{
		TableSink: buildTableSink(v), Path: v.at("path").text, PartitionBy: v.at("partitionBy").texts(), Compression: v.at("compression").text,
		AddColumns: v.at("schemaEvolution").text == "add-columns", CheckpointInterval: v.at("checkpointInterval").num,
		MaxPartRows: v.at("maxPartRows").num, MaxPartSize: v.at("maxPartSize").num,
	}
}

func buildSQLSink(v *value, kind string) *SQLSink {
	return &SQLSink{
		TableSink: buildTableSink(v), Kind: kind, Connection: v.at("connection").text, Table: v.at("table").text,
		Create: v.at("createTable").num == 1, Statement: v.at("statement").text, AtLeastOnce: v.at("idempotence").text == "none",
	}
}

// What a sink lacks that has no schema, and takes no binary rows either.
const (
	noEvolution      = "columns are added from the schema, and there is none: it is the table's own"
	noSchema         = "a table is made from a schema, and there is none"
	statementColumns = "a statement needs a schema: the columns that its parameters stand for"
)

// tableSinks checks the sinks of tables, and that those of one connection, which are one target, agree.
func (c *checker) tableSinks(j *Job, items []*value) {
	first := map[string]int{} // sink by connection
	for i := range j.Sinks {
		s, v := &j.Sinks[i], items[i]
		switch {
		case s.Delta != nil && v.at("delta").set:
			c.deltaSink(j, v.at("delta"), s)
		case s.SQL != nil && v.at(s.SQL.Kind).set:
			c.sqlSink(j, v.at(s.SQL.Kind), s)
			if n, ok := first[s.SQL.Connection]; !ok {
				first[s.SQL.Connection] = i
			} else if other := &j.Sinks[n]; other.SQL.AtLeastOnce != s.SQL.AtLeastOnce {
				c.wrongAt(v.at(s.SQL.Kind).path, CodeConflict, fmt.Sprintf("sink %s writes to the same connection with another idempotence: sinks of one connection share a transaction, so give each the same", other.Name), "")
			}
		}
	}
	c.sqliteFiles(j, items)
	for i := range j.Sinks {
		name := items[i].at("name")
		if _, taken := first[name.text]; taken && name.good() && j.Sinks[i].SQL == nil {
			c.wrongAt(name.path, CodeDuplicate, fmt.Sprintf("%q is also the connection that a sink writes to, and both names stand for what is published", name.text), "")
		}
	}
}

// sqliteFiles refuses two connections to one file: each would wait for the other's lock. It goes by the text of the paths.
func (c *checker) sqliteFiles(j *Job, items []*value) {
	owner := map[string]string{} // connection by file
	for i := range j.Sinks {
		q := j.Sinks[i].SQL
		if q == nil || q.Kind != "sqlite" {
			continue
		}
		at := slices.IndexFunc(j.Connections, func(n Connection) bool { return n.Kind == "sqlite" && n.Name == q.Connection })
		if at < 0 {
			continue
		}
		var given struct {
			Path string `json:"path"`
		}
		if json.Unmarshal(j.Connections[at].Settings, &given) != nil || given.Path == "" {
			continue // said where the connection is
		}
		file := filepath.Clean(given.Path)
		if !filepath.IsAbs(file) {
			file = filepath.Join(j.Dir, file)
		}
		if other, taken := owner[file]; taken && other != q.Connection {
			c.wrongAt(items[i].at("sqlite").at("connection").path, CodeConflict, fmt.Sprintf("the connections %s and %s lead to the same file (%s), and each would wait for the other's lock: "+
				"let the sinks share one connection, then they also share a transaction", other, q.Connection, c.show(file)), "")
			continue
		}
		owner[file] = q.Connection
	}
}

func (c *checker) deltaSink(j *Job, v *value, s *Sink) {
	if p := v.at("path"); p.good() && isGlob(p.text) {
		c.wrongAt(p.path, CodeValue, "a table's path is a directory, without *, ? and [", "")
	}
	c.keyColumns(v, s)
	d := s.Delta
	c.partitionColumns(v, d.Schema, d.PartitionBy)
	if e := v.at("schemaEvolution"); e.good() && d.AddColumns && !v.at("schema").set && !j.mayTakeRows(s) {
		c.wrongAt(e.path, CodeConflict, noEvolution, "")
	}
}

func (c *checker) sqlSink(j *Job, v *value, s *Sink) {
	q := s.SQL
	c.connection(j, v.at("connection"), q.Kind)
	c.keyColumns(v, s)
	table, schema, statement := v.at("table"), v.at("schema"), v.at("statement")
	switch {
	case table.set && table.good() && q.Table == "":
		c.wrongAt(table.path, CodeValue, "a table has a name", "")
	case !table.set && !(statement.set && s.Mode == ModeAppend):
		c.wrongAt(v.path, CodeMissing, "table is missing: the name of the table that gets the rows", "")
	case statement.good() && q.Statement == "":
		c.wrongAt(statement.path, CodeValue, "a statement has a text", "")
	case statement.set && !schema.set && !j.mayTakeRows(s):
		c.wrongAt(v.path, CodeMissing, statementColumns, "")
	case q.Create && !schema.set && !j.mayTakeRows(s):
		c.wrongAt(v.at("createTable").path, CodeMissing, noSchema, "")
	case q.Create && !table.set:
		c.wrongAt(v.at("createTable").path, CodeConflict, "createTable needs the name of the table", "")
	}
	if statement.good() && q.Statement != "" && schema.good() && c.env.CheckStatement != nil {
		if err := c.env.CheckStatement(q.Kind, q.Statement, q.Schema); err != nil {
			c.wrongAt(statement.path, CodeValue, err.Error(), "")
		}
	}
}

// keyColumns checks that upsert has a key, and that the key is of the schema.
func (c *checker) keyColumns(v *value, s *Sink) {
	key, schema := v.at("key"), v.at("schema")
	switch {
	case s.Mode == ModeUpsert && !key.set:
		c.wrongAt(v.path, CodeMissing, "mode upsert needs a key: the columns that tell rows apart, for example key: [id]", "")
	case s.Mode == ModeAppend && key.good():
		c.wrongAt(key.path, CodeConflict, "key is for mode: upsert, and the mode is append", "")
	}
	if !key.good() {
		return
	}
	c.unique(key, "column")
	if !schema.set || schema.bad {
		return
	}
	c.keyIn(key.path, s)
}

// keyIn checks that the key of a sink is of its schema.
func (c *checker) keyIn(path string, s *Sink) {
	names := columnNames(s.Columns())
	for n, k := range s.table().Key {
		at := fmt.Sprintf("%s[%d]", path, n)
		i := slices.Index(names, k)
		if i < 0 {
			c.wrongAt(at, CodeReference, fmt.Sprintf("no column %q in the schema", cut(k)), closest(k, names))
			continue
		}
		switch kind := s.Columns()[i].Type.Kind; kind {
		case "float", "double", "binary", "list", "map", "struct":
			c.wrongAt(at, CodeConflict, fmt.Sprintf("column %q is a %s, which is no key; use text, integers, decimals, dates, timestamps or booleans", cut(k), kind), "")
		}
	}
}

func columnNames(columns []Column) []string {
	names := make([]string, len(columns))
	for i, col := range columns {
		names[i] = col.Name
	}
	return names
}
