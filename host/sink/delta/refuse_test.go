package delta_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/rows/rowstest"
	"github.com/wasmill/wasmill/host/sink"
	target "github.com/wasmill/wasmill/host/sink/delta"
)

// makeDeclared makes a table with lengths in the metadata of its columns, as Spark writes them.
func makeDeclared(t *testing.T, files durable.Files) {
	t.Helper()
	var fields []string
	for _, c := range [][2]string{{"v", "varchar(3)"}, {"c", "char(5)"}, {"p", "varchar(2)"}, {"free", ""}} {
		meta := "{}"
		if c[1] != "" {
			meta = fmt.Sprintf(`{"__CHAR_VARCHAR_TYPE_STRING":%q}`, c[1])
		}
		fields = append(fields, fmt.Sprintf(`{"name":%q,"type":"string","nullable":true,"metadata":%s}`, c[0], meta))
	}
	commitAs(t, delta.OpenLog(files, "/t", (&clock{start}).now), nil, delta.Action{Protocol: &delta.Protocol{MinReader: 1, MinWriter: 2}}, delta.Action{Metadata: &delta.Metadata{
		ID: "11111111-2222-4333-8444-555555555555", Format: delta.Format{Provider: "parquet", Options: map[string]string{}},
		SchemaString: `{"type":"struct","fields":[` + strings.Join(fields, ",") + "]}", PartitionColumns: []string{"p"}, Configuration: map[string]string{},
	}})
}

// TestDeclaredLengths: a text longer than the table's varchar or char is refused, in characters, as is a key without the blanks
// that Spark fills a char with.
func TestDeclaredLengths(t *testing.T) {
	fine := []string{
		`{"v":"abc","c":"abcde","p":"xy","free":"as long as it likes to be"}`, `{"v":"äöü","c":"12345","p":"é€","free":null}`,
		`{"v":"","c":"    1","p":null,"free":""}`,
	}
	for _, c := range []struct {
		row, column string
		key         string
	}{
		{row: `{"v":"abcd"}`, column: "v"},
		{row: `{"v":"äöüß"}`, column: "v"},
		{row: `{"c":"123456"}`, column: "c"},
		{row: `{"p":"xyz"}`, column: "p"},
		{row: `{"c":"1234"}`},
		{row: `{"c":"1234"}`, key: "c", column: "c"},
		{row: `{"c":"12345"}`, key: "c"},
		{row: `{"v":"x","c":"1234"}`, key: "v"},
		{row: `{"v":"xxxx","c":"1234"}`, key: "v", column: "v"},
	} {
		for _, by := range [][]string{nil, {"p"}} {
			t.Run(fmt.Sprint(c.row, c.key, by), func(t *testing.T) {
				files := faulty.New().Process()
				makeDeclared(t, files)
				cfg := target.Config{Dir: "/t", Files: files, Schema: rowstest.SchemaOf(t, "v", "string", "c", "string", "p", "string", "free", "string"), PartitionBy: by}
				if c.key != "" {
					cfg.Key = []string{c.key}
				}
				tt := opened(t, cfg)
				mustBatch(t, tt, 0, fine...)
				if diff := cmp.Diff(fine, rowsOf(t, files, "/t"), sortLines); diff != "" {
					t.Error(diff)
				}
				_, err := stageRecords(tt, 1, "0a0b0c0d", valuesOf([]string{c.row}))
				if c.column == "" {
					if err != nil {
						t.Error(err)
					}
					return
				}
				var refused *sink.Refused
				if !errors.As(err, &refused) || len(refused.Rows) != 1 || refused.Rows[0].Misfit.Column != c.column || refused.Rows[0].Misfit.Code != "length" {
					t.Errorf("%+v, %v", refused, err)
				}
			})
		}
	}
}
