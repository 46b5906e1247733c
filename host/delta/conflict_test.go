package delta_test

import (
	"testing"

	"github.com/wasmill/wasmill/host/delta"
)

func TestConflicts(t *testing.T) {
	blind := delta.Intent{TxnID: "ours", AppID: "q", AppVersion: 5}
	upsert := blind
	upsert.Removes = map[string]bool{"a b": true}
	upsert.Reads = func(a *delta.Add) bool { return a.Path == "read" }
	vector := add("a%20b")
	vector.Add.DeletionVector = &delta.DeletionVector{StorageType: "u", PathOrInlineDV: "x"}
	for _, c := range []struct {
		name    string
		actions []delta.Action
		blind   delta.Conflict
		upsert  delta.Conflict
	}{
		{"an append", []delta.Action{info("x"), add("f")}, delta.NoConflict, delta.NoConflict},
		{"without commitInfo", []delta.Action{add("f")}, delta.NoConflict, delta.NoConflict},
		{"ours", []delta.Action{info("ours"), txn("q", 5), add("f")}, delta.Ours, delta.Ours},
		{"ours, with another version in it", []delta.Action{info("ours"), txn("q", 4)}, delta.Ours, delta.Ours},
		{"another self was as fast", []delta.Action{info("x"), txn("q", 5), add("f")}, delta.Done, delta.Done},
		{"another self is ahead", []delta.Action{info("x"), txn("q", 6)}, delta.Done, delta.Done},
		{"another self is behind", []delta.Action{info("x"), txn("q", 4)}, delta.Fenced, delta.Fenced},
		{"another self is ahead and changes the schema", []delta.Action{info("x"), txn("q", 6), {Metadata: metadata()}}, delta.Done, delta.Done},
		{"another application", []delta.Action{info("x"), txn("r", 5), add("f")}, delta.NoConflict, delta.NoConflict},
		{"a domain", []delta.Action{info("x"), {Domain: &delta.DomainMetadata{Domain: "d"}}}, delta.NoConflict, delta.NoConflict},
		{"a schema", []delta.Action{info("x"), {Metadata: metadata()}}, delta.MetadataChanged, delta.MetadataChanged},
		{"a protocol", []delta.Action{info("x"), {Protocol: protocol()}, {Metadata: metadata()}}, delta.ProtocolChanged, delta.ProtocolChanged},
		{"another file goes", []delta.Action{info("x"), remove("g")}, delta.NoConflict, delta.NoConflict},
		{"our file goes", []delta.Action{info("x"), remove("a%20b"), add("c")}, delta.NoConflict, delta.FileTouched},
		{"our file, spelt otherwise", []delta.Action{info("x"), remove("a b")}, delta.NoConflict, delta.FileTouched},
		{"our file gets a vector", []delta.Action{info("x"), remove("a%20b"), vector}, delta.NoConflict, delta.FileTouched},
		{"our file gets statistics", []delta.Action{info("x"), add("a%20b")}, delta.NoConflict, delta.FileTouched},
		{"what we read", []delta.Action{info("x"), add("f"), add("read")}, delta.NoConflict, delta.FileAdded},
	} {
		e := &delta.Entry{Version: 1, Actions: c.actions}
		if got := delta.Conflicts(e, blind); got != c.blind {
			t.Errorf("%s, append: %v, want %v", c.name, got, c.blind)
		}
		if got := delta.Conflicts(e, upsert); got != c.upsert {
			t.Errorf("%s, upsert: %v, want %v", c.name, got, c.upsert)
		}
	}
	anonymous := &delta.Entry{Version: 1, Actions: []delta.Action{info(""), add("f")}}
	if got := delta.Conflicts(anonymous, delta.Intent{}); got != delta.NoConflict {
		t.Errorf("without ids: %v", got)
	}
}
