package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/sink/sql"
)

// relation is the driver's own knowledge of a table.
type relation struct {
	name sql.Name
	// bulk: COPY takes rows for it as INSERT does. A table with row security is none, nor a view, nor one with a rule for INSERT.
	bulk bool
	may  struct{ insert, update, pick bool }
	// whole: rows may need each other by the end of a statement, so that all of a batch must be in one.
	whole bool
	mark  string // what it was when it was described
}

// column is the driver's own knowledge of a column.
type column struct {
	oid    uint32 // of the type, below any domains
	name   string // of that type, as SQL
	typ    string // its short name: int4, numeric
	kind   string // b base, e enum, ..
	mod    int    // type modifier, or -1
	loose  bool   // texts that differ may be equal, by its collation or by that of a unique index
	labels []string
}

// The queries that describe a table: $1 is its name.
const (
	tableQuery = `SELECT c.relkind::text, c.relrowsecurity::text, has_any_column_privilege(c.oid, 'INSERT')::text,
	has_any_column_privilege(c.oid, 'UPDATE')::text, has_any_column_privilege(c.oid, 'SELECT')::text,
	EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE k.conrelid = c.oid AND (k.contype = 'f' AND k.confrelid = c.oid OR k.condeferrable))::text,
	(c.relpersistence = 'u' OR EXISTS (SELECT FROM pg_catalog.pg_partition_tree(c.oid) p JOIN pg_catalog.pg_class l ON l.oid = p.relid WHERE l.relpersistence = 'u'))::text,
	EXISTS (SELECT FROM pg_catalog.pg_rewrite w WHERE w.ev_class = c.oid AND w.ev_type = '3' AND w.ev_enabled IN ('O', 'A'))::text
FROM pg_catalog.pg_class c WHERE c.oid = pg_catalog.to_regclass($1)`
	columnsQuery = `WITH RECURSIVE base(root, oid, typmod, needed) AS (
	SELECT t.oid, t.oid, -1, false FROM pg_catalog.pg_type t WHERE t.oid IN (SELECT atttypid FROM pg_catalog.pg_attribute WHERE attrelid = pg_catalog.to_regclass($1))
	UNION ALL
	SELECT b.root, t.typbasetype, CASE WHEN b.typmod = -1 THEN t.typtypmod ELSE b.typmod END, b.needed OR t.typnotnull
	FROM base b JOIN pg_catalog.pg_type t ON t.oid = b.oid WHERE t.typtype = 'd'
)
SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), (a.attnotnull OR b.needed)::text, (a.atthasdef OR a.attidentity <> '')::text,
	(a.attgenerated <> '' OR a.attidentity = 'a')::text, t.oid, pg_catalog.format_type(t.oid, -1), t.typname, t.typtype::text,
	CASE WHEN a.atttypmod = -1 THEN b.typmod ELSE a.atttypmod END,
	EXISTS (SELECT FROM pg_catalog.pg_collation k WHERE NOT k.collisdeterministic AND (k.oid = a.attcollation OR k.oid IN (
		SELECT i.indcollation[n] FROM pg_catalog.pg_index i, generate_series(0, i.indnkeyatts - 1) n
		WHERE i.indrelid = a.attrelid AND i.indisunique AND i.indkey[n] = a.attnum)))::text,
	(SELECT json_agg(e.enumlabel ORDER BY e.enumsortorder)::text FROM pg_catalog.pg_enum e WHERE e.enumtypid = t.oid)
FROM pg_catalog.pg_attribute a JOIN base b ON b.root = a.atttypid JOIN pg_catalog.pg_type t ON t.oid = b.oid AND t.typtype <> 'd'
WHERE a.attrelid = pg_catalog.to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`
	uniqueQuery = `SELECT i.indexrelid, a.attname FROM pg_catalog.pg_index i
JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey[0:i.indnkeyatts - 1])
WHERE i.indrelid = pg_catalog.to_regclass($1) AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL
ORDER BY i.indexrelid, a.attnum`
)

// markQuery tells one form of a table from another: it is all that describes it.
const markQuery = "SELECT concat((SELECT string_agg(q::text, ' ') FROM (" + tableQuery + ") q), (SELECT string_agg(q::text, ' ') FROM (" + columnsQuery +
	") q), (SELECT string_agg(q::text, ' ') FROM (" + uniqueQuery + ") q))"

// markOf returns the mark of a table, which is empty when there is none.
func (c *Conn) markOf(ctx context.Context, n sql.Name) (string, error) {
	got, err := c.queryMark(ctx, n.Quoted())
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
	mark, err := c.markOf(ctx, n) // before the rest, so that a change meanwhile shows
	if err != nil {
		return nil, err
	}
	found, err := c.Query(ctx, tableQuery, n.Quoted())
	if err != nil || len(found) == 0 {
		return nil, err
	}
	rel := found[0]
	if !strings.Contains("rpvf", rel[0]) {
		return nil, &sql.Mismatch{Code: sql.CodeTable, Err: errors.New("it is no table but something else"), WayOut: "name a table"}
	}
	r := &relation{name: n, mark: mark, bulk: rel[1] == "false" && rel[0] != "v" && rel[7] == "false"}
	r.may.insert, r.may.update, r.may.pick = rel[2] == "true", rel[3] == "true", rel[4] == "true"
	r.whole = rel[5] == "true"
	t := &sql.Table{Name: name, Private: r, Unlogged: rel[6] == "true"}
	if err := c.columns(ctx, t, n); err != nil {
		return nil, err
	}
	unique, err := c.Query(ctx, uniqueQuery, n.Quoted())
	if err != nil {
		return nil, err
	}
	last := ""
	for _, u := range unique {
		if u[0] != last {
			t.Unique = append(t.Unique, nil)
			last = u[0]
		}
		t.Unique[len(t.Unique)-1] = append(t.Unique[len(t.Unique)-1], u[1])
	}
	return t, nil
}

func (c *Conn) columns(ctx context.Context, t *sql.Table, n sql.Name) error {
	got, err := c.Query(ctx, columnsQuery, n.Quoted())
	if err != nil {
		return err
	}
	for _, g := range got {
		typ, err1 := strconv.ParseUint(g[5], 10, 32)
		mod, err2 := strconv.Atoi(g[9])
		if err := errors.Join(err1, err2); err != nil {
			return fmt.Errorf("describe column %s: %w", g[0], err)
		}
		own := &column{oid: uint32(typ), name: g[6], typ: g[7], kind: g[8], mod: mod, loose: g[10] == "true"}
		if g[11] != "" {
			if err := json.Unmarshal([]byte(g[11]), &own.labels); err != nil {
				return fmt.Errorf("describe column %s: the values of its type: %w", g[0], err)
			}
		}
		t.Columns = append(t.Columns, sql.Column{
			Name: g[0], Type: g[1], NotNull: g[2] == "true", Filled: g[3] == "true", Computed: g[4] == "true", Row: own.row(), Private: own,
		})
	}
	return nil
}

// row is the type of rows for a column; the zero type for one that has none.
func (c *column) row() rows.Type {
	kinds := map[string]rows.Kind{
		"bool": rows.Boolean, "int2": rows.Int16, "int4": rows.Int32, "int8": rows.Int64, "float4": rows.Float, "float8": rows.Double,
		"text": rows.String, "varchar": rows.String, "bpchar": rows.String, "uuid": rows.String, "json": rows.String, "jsonb": rows.String,
		"bytea": rows.Binary, "date": rows.Date, "timestamptz": rows.Timestamp, "timestamp": rows.TimestampNTZ,
	}
	if k, ok := kinds[c.typ]; ok {
		return rows.Type{Kind: k}
	}
	if c.kind == "e" {
		return rows.Type{Kind: rows.String}
	}
	if p, s, ok := c.decimal(); ok && p <= rows.MaxPrecision && s >= 0 && s <= p {
		return rows.Type{Kind: rows.Decimal, Precision: p, Scale: s}
	}
	return rows.Type{}
}

// decimal returns precision and scale of a numeric that has them.
func (c *column) decimal() (precision, scale int, ok bool) {
	if c.typ != "numeric" || c.mod < 4 {
		return 0, 0, false
	}
	m := c.mod - 4 // VARHDRSZ
	scale = m & 0x7ff
	if scale >= 1024 {
		scale -= 2048
	}
	return m >> 16 & 0xffff, scale, true
}

// length returns n of a varchar(n) or char(n), or 0.
func (c *column) length() int {
	if c.mod >= 4 && (c.typ == "varchar" || c.typ == "bpchar") {
		return c.mod - 4
	}
	return 0
}

// typeNames are the types of made tables.
func typeName(t rows.Type) string {
	switch t.Kind {
	case rows.Boolean:
		return "boolean"
	case rows.Int8, rows.Int16:
		return "smallint"
	case rows.Int32:
		return "integer"
	case rows.Int64:
		return "bigint"
	case rows.Float:
		return "real"
	case rows.Double:
		return "double precision"
	case rows.Decimal:
		return fmt.Sprintf("numeric(%d,%d)", t.Precision, t.Scale)
	case rows.Timestamp:
		return "timestamp with time zone"
	case rows.TimestampNTZ:
		return "timestamp without time zone"
	case rows.Date:
		return "date"
	case rows.Binary:
		return "bytea"
	case rows.List, rows.Map, rows.Struct:
		return "jsonb"
	}
	return "text"
}

// placeQuery knows a server by the moment of its start.
const placeQuery = `SELECT concat_ws('.', extract(epoch FROM pg_postmaster_start_time()), quote_ident(current_database()),
	quote_ident(coalesce(n.nspname, nullif($2, ''), current_schema())), quote_ident(coalesce(c.relname, $3)))
FROM (SELECT pg_catalog.to_regclass($1) AS oid) AS named LEFT JOIN pg_catalog.pg_class c ON c.oid = named.oid LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace`

// Place implements sql.Conn.
func (c *Conn) Place(ctx context.Context, name string) (string, error) {
	n, err := sql.ParseName(name)
	if err != nil {
		return "", err
	}
	got, err := c.Query(ctx, placeQuery, n.Quoted(), n.Schema, n.Table)
	if err != nil || len(got) == 0 {
		return "", err
	}
	return got[0][0], nil
}

// maxIdent is how many bytes of a name the server keeps.
const maxIdent = 63

// mayCreateQuery is for a schema, or for the first of the search path that is there.
const mayCreateQuery = `SELECT n.nspname, pg_catalog.has_schema_privilege(n.oid, 'CREATE')::text FROM pg_catalog.pg_namespace n
WHERE n.nspname = coalesce(nullif($1, ''), current_schema()::text)`

// MayCreate implements sql.Conn.
func (c *Conn) MayCreate(ctx context.Context, name string) error {
	n, err := sql.ParseName(name)
	if err != nil {
		return err
	}
	got, err := c.Query(ctx, mayCreateQuery, n.Schema)
	switch {
	case err != nil:
		return err
	case len(got) == 0 && n.Schema == "":
		return &sql.Mismatch{Code: sql.CodeTable, Err: errors.New("no schema of the role's search_path is there"), WayOut: "write the table's name as schema.name, or create the schema"}
	case len(got) == 0:
		return &sql.Mismatch{Code: sql.CodeTable, Err: fmt.Errorf("there is no schema %q", n.Schema), WayOut: "create the schema, or correct the table's name"}
	case got[0][1] != "true":
		return &sql.Mismatch{
			Code: sql.CodePrivilege, Err: fmt.Errorf("the role may not make tables in schema %q", got[0][0]),
			WayOut: fmt.Sprintf("grant the role CREATE on the schema %s, or make the table beforehand with a role that may, and grant this one what it needs there", sql.Quote(got[0][0])),
		}
	}
	return nil
}

// CreateTable implements sql.Conn.
func (c *Conn) CreateTable(ctx context.Context, name string, schema *rows.Schema, key []string) error {
	n, err := sql.ParseName(name)
	if err != nil {
		return err
	}
	names := []string{n.Schema, n.Table}
	var defs []string
	for _, col := range schema.Columns() {
		names = append(names, col.Name)
		def := sql.Quote(col.Name) + " " + typeName(col.Type)
		if col.Type.Required || slices.Contains(key, col.Name) {
			def += " NOT NULL"
		}
		defs = append(defs, def)
	}
	for _, ident := range names {
		if len(ident) > maxIdent {
			return &sql.Mismatch{
				Code: sql.CodeColumn, Err: fmt.Errorf("the name %.80q has %d bytes, and the server keeps %d", ident, len(ident), maxIdent),
				WayOut: "give it a shorter name",
			}
		}
	}
	if len(key) > 0 {
		quoted := make([]string, len(key))
		for i, k := range key {
			quoted[i] = sql.Quote(k)
		}
		defs = append(defs, "PRIMARY KEY ("+strings.Join(quoted, ", ")+")")
	}
	_, err = c.Query(ctx, "CREATE TABLE IF NOT EXISTS "+n.Quoted()+" ("+strings.Join(defs, ", ")+")")
	return err
}
