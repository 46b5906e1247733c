package kit

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/abi"
)

// askCells asks for the numbers of the golden vectors, each as a value and as a key, and for a key that is null.
func askCells(t *testing.T, ask func(op, value string) string) {
	t.Helper()
	text, err := os.ReadFile("../vectors/cells.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct{ Type, Text, Hex string }
	if err := json.Unmarshal(text, &vectors); err != nil || len(vectors) < 100 {
		t.Fatalf("%d vectors, %v", len(vectors), err)
	}
	noKey := strings.Repeat("03", 17)
	for _, v := range vectors {
		key := noKey
		if v.Hex[:2] == "01" {
			key = v.Hex[2:]
		}
		if got := ask(v.Type, `{"s":"`+v.Text+`"}`); got[10:] != v.Hex+key+noKey {
			t.Errorf("%s %s: %s, want %s", v.Type, v.Text, got[10:], v.Hex+key+noKey)
		}
	}
}

// TestCRows: the rows of the golden vectors, and strings of the input that outgrow a small arena.
func TestCRows(t *testing.T) {
	text, err := os.ReadFile("../vectors/rows.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct{ Doc, Hex string }
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, v := range vectors {
		want[v.Doc] = v.Hex
	}
	for _, file := range []string{"test/rows.wasm", "test/rows-tiny.wasm"} {
		p, err := cGuest(t, file, "{}")
		if err != nil {
			t.Fatal(err)
		}
		ask := func(op, value string) string {
			rec := abi.Record{Key: []byte(op), Value: []byte(value)}
			locator, err := abi.NewLocator([]string{"/s"})
			if err != nil {
				t.Fatal(err)
			}
			rec.Fields = make([]abi.Field, 1)
			locator.Locate(rec.Value, rec.Fields)
			out, err := cCall(p, []abi.Record{rec}, 0)
			if err != nil || len(out) != 1 {
				t.Fatalf("%s: %s: %d records, %v", file, op, len(out), err)
			}
			return hex.EncodeToString(out[0].Value)
		}
		for _, doc := range []string{"every type", "nested"} {
			if got := ask(doc, `{}`); got != want[doc] || got == "" {
				t.Errorf("%s: %s: %s, want %s", file, doc, got, want[doc])
			}
		}
		askCells(t, ask)
		long := strings.Repeat("0123456789", 1000)
		for value, row := range map[string]string{`{"s":"x"}`: "010100000078", `{"s":"\u00e9"}`: "0102000000c3a9", `{"s":1}`: "00", `{}`: "00", `{"s":"` + long + `"}`: "0110270000" + hex.EncodeToString([]byte(long))} {
			if got := ask("text", value); len(got) < 10 || got[10:] != row+"010700000000000000" {
				t.Errorf("%s: %.40s: %.60s, want %.60s", file, value, got, row)
			}
		}
	}
}
