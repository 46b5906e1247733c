package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/sink/sql"
)

// affinity is how a column converts what it is given: https://www.sqlite.org/datatype3.html.
type affinity uint8

const (
	asIs affinity = iota
	toText
	toInteger
	toReal
	toNumeric
)

// affinityOf finds the affinity of a declared type. The columns of strict tables have the same by these rules, but ANY.
func affinityOf(declared string, strict bool) affinity {
	d := strings.ToUpper(declared)
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(d, p) })
	}
	switch {
	case has("INT"):
		return toInteger
	case has("CHAR", "CLOB", "TEXT"):
		return toText
	case d == "" || has("BLOB") || strict && d == "ANY":
		return asIs
	case has("REAL", "FLOA", "DOUB"):
		return toReal
	}
	return toNumeric
}

// column is the driver's own knowledge of a column.
type column struct {
	affinity affinity
	// only is the one type that a strict table takes there, as INT, REAL, TEXT, BLOB; "" for any.
	only string
}

// relation is the driver's own knowledge of a table.
type relation struct {
	name sql.Name
	mark string // the statement that makes it, as it was when it was described
}

// markOf returns the statement that makes a table, which is empty when there is none.
func (c *Conn) markOf(ctx context.Context, n sql.Name) (string, error) {
	got, err := c.Query(ctx, "SELECT sql FROM "+sql.Quote(n.Schema)+".sqlite_schema WHERE name = $1", n.Table)
	if err != nil || len(got) == 0 {
		return "", err
	}
	return got[0][0], nil
}

// Table implements sql.Conn.
func (c *Conn) Table(ctx context.Context, name string) (*sql.Table, error) {
	n, err := sql.ParseName(name)
	if err != nil {
		return nil, err
	}
	if strings.EqualFold(n.Schema, "temp") {
		return nil, &sql.Mismatch{Code: sql.CodeTable, Err: errors.New("a table of temp is gone when the job ends"), WayOut: "name a table of the file"}
	}
	where, args := "name = $1 COLLATE NOCASE", []string{n.Table}
	if n.Schema != "" {
		where, args = where+" AND schema = $2 COLLATE NOCASE", append(args, n.Schema)
	}
	found, err := c.Query(ctx, "SELECT schema, name, type, strict FROM pragma_table_list WHERE "+where, args...)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	if kind := found[0][2]; kind == "shadow" {
		return nil, &sql.Mismatch{Code: sql.CodeTable, Err: errors.New("it is a part of a virtual table"), WayOut: "name a table"}
	}
	at := found[0][:2]
	own := &relation{name: sql.Name{Schema: at[0], Table: at[1]}}
	if own.mark, err = c.markOf(ctx, own.name); err != nil {
		return nil, err
	}
	t := &sql.Table{Name: name, Private: own}
	if err := c.columns(ctx, t, at, found[0][3] == "1"); err != nil {
		return nil, err
	}
	return t, c.unique(ctx, t, at)
}

func (c *Conn) columns(ctx context.Context, t *sql.Table, at []string, strict bool) error {
	got, err := c.Query(ctx, `SELECT name, type, "notnull", dflt_value IS NOT NULL, pk, hidden FROM pragma_table_xinfo($2, $1) ORDER BY cid`, at...)
	if err != nil {
		return err
	}
	// A primary key that is not the row's number has an index, also in a table without row numbers.
	indexed, err := c.Query(ctx, "SELECT 1 FROM pragma_index_list($2, $1) WHERE origin = 'pk'", at...)
	if err != nil {
		return err
	}
	for _, g := range got {
		own := &column{affinity: affinityOf(g[1], strict)}
		if strict && !strings.EqualFold(g[1], "ANY") {
			own.only = strings.ToUpper(g[1])
		}
		// The key column that is the row's number is made up where it is null.
		number := g[4] != "0" && len(indexed) == 0 && strings.EqualFold(g[1], "INTEGER")
		if number {
			t.Unique = append(t.Unique, []string{g[0]})
		}
		t.Columns = append(t.Columns, sql.Column{
			Name: g[0], Type: declared(g[1]), NotNull: g[2] == "1" && !number, Filled: g[3] == "1" || number, Computed: g[5] != "0",
			Row: rowType(g[1], own), Private: own,
		})
	}
	return nil
}

func declared(typ string) string {
	if typ == "" {
		return "column without a type"
	}
	return typ
}

// unique finds the indexes that an upsert can go by. Where another order than that of the bytes counts, texts that differ may be
// equal.
func (c *Conn) unique(ctx context.Context, t *sql.Table, at []string) error {
	got, err := c.Query(ctx, `SELECT l.name, coalesce(x.name, ''), x.coll FROM pragma_index_list($2, $1) AS l, pragma_index_xinfo(l.name, $1) AS x
WHERE l."unique" AND NOT l.partial AND x.key ORDER BY l.seq, x.seqno`, at...)
	if err != nil {
		return err
	}
	columns, usable := map[string][]string{}, map[string]bool{}
	var order []string
	for _, g := range got {
		if _, seen := columns[g[0]]; !seen {
			order = append(order, g[0])
			usable[g[0]] = true
		}
		columns[g[0]] = append(columns[g[0]], g[1])
		usable[g[0]] = usable[g[0]] && g[1] != "" && g[2] == "BINARY"
	}
	for _, name := range order {
		if usable[name] {
			t.Unique = append(t.Unique, columns[name])
		}
	}
	return nil
}

var decimalType = regexp.MustCompile(`^(?:DECIMAL|NUMERIC) ?\( ?(\d+) ?(?:, ?(\d+) ?)?\)$`)

// realDigits are how many decimal digits SQLite keeps of a number that is not an integer.
const realDigits = 15

// rowType is the type of rows for a column; the zero type for one that has none.
func rowType(typ string, own *column) rows.Type {
	d := strings.ToUpper(typ)
	switch own.affinity {
	case toInteger:
		return rows.Type{Kind: rows.Int64}
	case toText:
		return rows.Type{Kind: rows.String}
	case toReal:
		return rows.Type{Kind: rows.Double}
	case asIs:
		if d == "BLOB" {
			return rows.Type{Kind: rows.Binary}
		}
		return rows.Type{}
	}
	switch d {
	case "BOOLEAN", "BOOL":
		return rows.Type{Kind: rows.Boolean}
	case "DATE":
		return rows.Type{Kind: rows.Date}
	case "DATETIME", "TIMESTAMP":
		return rows.Type{Kind: rows.Timestamp}
	}
	if m := decimalType.FindStringSubmatch(d); m != nil {
		p, err := strconv.Atoi(m[1])
		s, _ := strconv.Atoi(m[2]) // without one it is 0
		if err == nil && p >= 1 && p <= realDigits && s <= p {
			return rows.Type{Kind: rows.Decimal, Precision: p, Scale: s}
		}
	}
	return rows.Type{}
}

func typeName(t rows.Type) string {
	switch t.Kind {
	case rows.Boolean:
		return "BOOLEAN"
	case rows.Int8, rows.Int16, rows.Int32, rows.Int64:
		return "INTEGER"
	case rows.Float, rows.Double:
		return "REAL"
	case rows.Binary:
		return "BLOB"
	}
	return "TEXT"
}

// Place implements sql.Conn. Letters of ASCII are the same in either case, and main is the schema of the file.
func (c *Conn) Place(_ context.Context, name string) (string, error) {
	n, err := sql.ParseName(name)
	if err != nil {
		return "", err
	}
	fold := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r >= 'A' && r <= 'Z' {
				return r + 'a' - 'A'
			}
			return r
		}, s)
	}
	return fmt.Sprintf("%q.%q.%q", c.path, fold(cmp.Or(n.Schema, "main")), fold(n.Table)), nil
}

// MayCreate implements sql.Conn: who may write to the file may make tables.
func (c *Conn) MayCreate(context.Context, string) error { return nil }

// CreateTable implements sql.Conn.
func (c *Conn) CreateTable(ctx context.Context, name string, schema *rows.Schema, key []string) error {
	n, err := sql.ParseName(name)
	if err != nil {
		return err
	}
	var defs []string
	for _, col := range schema.Columns() {
		def := sql.Quote(col.Name) + " " + typeName(col.Type)
		if col.Type.Required || slices.Contains(key, col.Name) {
			def += " NOT NULL"
		}
		defs = append(defs, def)
	}
	if len(key) > 0 {
		quoted := make([]string, len(key))
		for i, k := range key {
			quoted[i] = sql.Quote(k)
		}
		defs = append(defs, "PRIMARY KEY ("+strings.Join(quoted, ", ")+")")
	}
	return c.exec(ctx, fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (%s)", n.Quoted(), strings.Join(defs, ", ")))
}
