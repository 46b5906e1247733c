package delta_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/rows"
)

func TestPartitionDir(t *testing.T) {
	for _, c := range []struct {
		value *string
		want  string
	}{
		{nil, "p=__HIVE_DEFAULT_PARTITION__"},
		{ptr(""), "p=__HIVE_DEFAULT_PARTITION__"},
		{ptr("Z.9_-"), "p=Z.9_-"},
		{ptr("k=v:%20 +/"), "p=k%3Dv%3A%2520%20%2B%2F"},
		{ptr("ü"), "p=%C3%BC"},
		{ptr(".."), "p=.."},
	} {
		if got := delta.PartitionDir([]string{"p"}, []*string{c.value}); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	if got := delta.PartitionDir([]string{"a b", "c"}, []*string{ptr("1"), ptr("2")}); got != "a%20b=1/c=2" {
		t.Errorf("got %s", got)
	}
	if got := delta.PartitionDir(nil, nil); got != "" {
		t.Errorf("got %s", got)
	}
	if got := delta.LogPath("p=k%3Dv/part-0.c000.parquet"); got != "p=k%253Dv/part-0.c000.parquet" {
		t.Errorf("got %s", got)
	}
}

// Both layers of encoding come off again, whatever the value.
func TestPathsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := strings.ReplaceAll(rapid.String().Draw(t, "value"), "\x00", "")
		rel := delta.PartitionDir([]string{"p", "q"}, []*string{&value, nil}) + "/part-0.parquet"
		got, err := delta.FilePath(delta.LogPath(rel))
		if err != nil || got != rel {
			t.Fatalf("%q became %q, %v", rel, got, err)
		}
		if strings.Count(rel, "/") != 2 || strings.ContainsAny(rel, " :\\\n") {
			t.Fatalf("%q", rel)
		}
		plain := strings.Trim(value, "/.")
		if plain == "" || strings.Contains(plain, "/") {
			return
		}
		if got, err := delta.FilePath(delta.LogPath(plain)); err != nil || got != plain {
			t.Fatalf("%q became %q, %v", plain, got, err)
		}
	})
}

func TestPathsOutsideAreRefused(t *testing.T) {
	for _, p := range []string{
		"", "/a", "//a", "file:/a/b", "file:///a", "s3://b/a", "a/../../b", "../a", "a/./b", "a//b", "a/", "%2Fa", "%2e%2e/a", "a/%2E%2E/b", "%zz", "a%00b", "%ff",
	} {
		if got, err := delta.FilePath(p); err == nil {
			t.Errorf("%q: %q", p, got)
		} else {
			wantFault(t, err, delta.CodePath)
		}
	}
	if got, err := delta.FilePath("p=a:b/c"); err != nil || got != "p=a:b/c" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestPartitionValues(t *testing.T) {
	for _, c := range []struct {
		typ, json string
		text      string
	}{
		{"string", `"a b/ü"`, "a b/ü"},
		{"string", `"null"`, "null"},
		{"boolean", `true`, "true"},
		{"int8", `-128`, "-128"},
		{"int64", `9223372036854775807`, "9223372036854775807"},
		{"float", `1.5`, "1.5"},
		{"double", `-1e300`, "-1e+300"},
		{"double", `"NaN"`, "NaN"},
		{"double", `"-Infinity"`, "-Infinity"},
		{"decimal(38,2)", `-12345678901234567890.5`, "-12345678901234567890.50"},
		{"date", `"0001-01-01"`, "0001-01-01"},
		{"timestamp", `"2026-01-02T03:04:05.678901+01:00"`, "2026-01-02T02:04:05.678901Z"},
		{"timestamp", `"1970-01-01T00:00:00Z"`, "1970-01-01T00:00:00.000000Z"},
		{"timestamp_ntz", `"2026-01-02T03:04:05.6789"`, "2026-01-02 03:04:05.6789"},
		{"timestamp_ntz", `"0001-01-01T00:00:00"`, "0001-01-01 00:00:00"},
	} {
		s := schemaOf(t, "v", c.typ)
		table := rows.NewTable(s)
		must(t, table.Append(fmt.Appendf(nil, `{"v":%s}`, c.json)))
		got, err := delta.PartitionText([]byte("x"), table.Column(0), 0)
		if err != nil || string(got) != "x"+c.text {
			t.Errorf("%s %s: %s, %v", c.typ, c.json, got, err)
		}
		back, err := delta.PartitionValue(s.Column(0).Type, &c.text)
		must(t, err)
		if again := back.AppendText(nil, s.Column(0).Type); !bytes.Equal(again, table.Column(0).AppendText(nil, 0)) {
			t.Errorf("%s %s: back as %s", c.typ, c.text, again)
		}
	}
	table := rows.NewTable(schemaOf(t, "v", "string"))
	must(t, table.Append([]byte(`{"v":""}`)))
	if _, err := delta.PartitionText(nil, table.Column(0), 0); err != delta.ErrEmptyPartition {
		t.Errorf("an empty text: %v", err)
	}
}

// Other engines write time stamps without a zone and floats their own way.
func TestForeignPartitionValues(t *testing.T) {
	value := func(typ string, text *string) rows.Value {
		v, err := delta.PartitionValue(schemaOf(t, "v", typ).Column(0).Type, text)
		must(t, err)
		return v
	}
	for _, text := range []string{"2026-01-02 03:04:05.678901", "2026-01-02T03:04:05.678901Z"} {
		if v := value("timestamp", &text); v.Int != 1767323045678901 {
			t.Errorf("%s: %d", text, v.Int)
		}
	}
	for _, text := range []string{"2026-01-02 03:04:05.678901", "2026-01-02T03:04:05.678901"} {
		if v := value("timestamp_ntz", &text); v.Int != 1767323045678901 {
			t.Errorf("%s: %d", text, v.Int)
		}
	}
	if v := value("timestamp", ptr("1970-01-01 00:00:00")); v.Int != 0 || v.Null {
		t.Errorf("epoch: %v", v)
	}
	if v := value("double", ptr("1.0E10")); v.Float != 1e10 {
		t.Errorf("1.0E10: %v", v)
	}
	if v := value("double", ptr("Infinity")); !math.IsInf(v.Float, 1) {
		t.Errorf("Infinity: %v", v)
	}
	for _, text := range []*string{nil, ptr("")} {
		for _, typ := range []string{"string", "int32", "date"} {
			if v := value(typ, text); !v.Null {
				t.Errorf("%v of %s: %v", text, typ, v)
			}
		}
	}
	for typ, text := range map[string]string{"int32": "x", "date": "2026-13-01", "timestamp": "2026-01-02 03", "timestamp_ntz": "2026-01-02T03:04:05Z", "boolean": "yes", "decimal(3,1)": "1.25", "int8": "128"} {
		_, err := delta.PartitionValue(schemaOf(t, "v", typ).Column(0).Type, &text)
		if err == nil {
			t.Errorf("%s as %s", text, typ)
			continue
		}
		wantFault(t, err, delta.CodeValue, text)
	}
}
