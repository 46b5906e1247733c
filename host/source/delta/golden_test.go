package delta_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	logs "github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/source"
	"github.com/wasmill/wasmill/host/source/delta"
)

// refused are the real tables that cannot be read right, and what the refusal names.
var refused = map[string][2]string{
	"e-column-mapping-id":   {logs.CodeFeature, "columnMapping"},
	"e-column-mapping-name": {logs.CodeFeature, "columnMapping"},
	"e-deletion-vectors":    {logs.CodeFeature, "deletionVectors"},
	"e-iceberg-compat-v2":   {logs.CodeFeature, "columnMapping"},
	"e-type-widening":       {logs.CodeFeature, "typeWidening"},
	"e-variant":             {logs.CodeFeature, "variant"},
}

func golden(t *testing.T, name string, opts ...func(*delta.Config)) *delta.Source {
	t.Helper()
	cfg := delta.Config{Name: "in", Dir: filepath.Join("testdata", "spark", name), Start: delta.Start{Snapshot: true}, Files: durable.OS(), Clock: time.Now}
	for _, opt := range opts {
		opt(&cfg)
	}
	return must(delta.New(cfg))(t)
}

// Real tables are read exactly, in the order of a stream, or refused by name.
func TestGoldenTables(t *testing.T) {
	there, err := os.ReadDir(filepath.Join("testdata", "spark"))
	if err != nil {
		t.Fatal(err)
	}
	orders := readOrders(t)
	if len(there) != len(orders)+len(refused) {
		t.Fatalf("%d tables, %d read and %d refused", len(there), len(orders), len(refused))
	}
	for _, d := range there {
		t.Run(d.Name(), func(t *testing.T) {
			if want, ok := refused[d.Name()]; ok {
				_, err := golden(t, d.Name()).Latest(ctx, checkpoint.Position{}, source.Limit{})
				wantFault(t, err, want[0], want[1])
				return
			}
			for _, limit := range []int64{0, 1, 3} {
				values, _ := drain(t, golden(t, d.Name()), checkpoint.Position{}, limit)
				compareGolden(t, d.Name(), values, orders[d.Name()].Snapshot)
				values, _ = drain(t, golden(t, d.Name(), from(0)), checkpoint.Position{}, limit)
				compareGolden(t, d.Name(), values, orders[d.Name()].Versions)
			}
		})
	}
}

type orders map[string]struct{ Snapshot, Versions []int64 }

func readOrders(t *testing.T) orders {
	t.Helper()
	var o orders
	text, err := os.ReadFile(filepath.Join("testdata", "order.json"))
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var out map[string]any
	if err := dec.Decode(&out); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out
}

// compareGolden compares values with the rows that Spark read, and their order with what it should be.
func compareGolden(t *testing.T, name string, values []string, order []int64) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "expected", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	want, rows := map[string]map[string]any{}, 0
	for line := range bytes.Lines(text) {
		row := decode(t, string(line))
		rows++
		want[fmt.Sprint(row["id"])] = row
	}
	var ids []int64
	for _, v := range values {
		plain := must(strconv.Unquote(v))(t)
		got := decode(t, plain)
		id := fmt.Sprint(got["id"])
		ids = append(ids, must(strconv.ParseInt(id, 10, 64))(t))
		if row, ok := want[id]; !ok || !same(row, got) {
			t.Fatalf("row %s, want %v", plain, row)
		}
	}
	if !slices.Equal(ids, order) || len(order) != rows {
		t.Fatalf("order %v, want %v of %d rows", ids, order, rows)
	}
}

// same compares a value of the canonical form of expected with one that was read. There decimals are text, and floats
// doubles.
func same(want, got any) bool {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok || len(w) != len(g) {
			return false
		}
		for k := range w {
			if other, ok := g[k]; !ok || !same(w[k], other) {
				return false
			}
		}
		return true
	case []any:
		g, ok := got.([]any)
		return ok && slices.EqualFunc(w, g, same)
	case string:
		if n, ok := got.(json.Number); ok {
			return n.String() == w
		}
		special := map[string]string{"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
		return got == w || special[w] != "" && got == special[w]
	case json.Number:
		g, ok := got.(json.Number)
		return ok && (g == w || sameFloat(w, g))
	}
	return reflect.DeepEqual(want, got)
}

func sameFloat(a, b json.Number) bool {
	x, err1 := a.Float64()
	y, err2 := b.Float64()
	if err1 != nil || err2 != nil || math.Signbit(x) != math.Signbit(y) {
		return false
	}
	return x == y || float32(x) == float32(y) && len(b) < len(a)
}
