package delta_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/host/delta"
)

func ptr[T any](v T) *T { return &v }

// What another engine writes: nulls are absent, what is not known is skipped, commitInfo may hold anything.
func TestForeignLines(t *testing.T) {
	for _, c := range []struct {
		name, line string
		want       delta.Action
	}{
		{
			"nulls",
			`{"add":{"path":"f","partitionValues":{"p":null,"q":"1"},"size":5,"modificationTime":7,"dataChange":false,"stats":null,"tags":null,"deletionVector":null,"baseRowId":null},"remove":null}`,
			delta.Action{Add: &delta.Add{Path: "f", PartitionValues: map[string]*string{"p": nil, "q": ptr("1")}, Size: 5, ModificationTime: 7}},
		},
		{
			"unknown fields", `{"remove":{"path":"f","dataChange":true,"new":{"a":[1]}},"other":{"b":1}}`,
			delta.Action{Remove: &delta.Remove{Path: "f", DataChange: true}},
		},
		{
			"names of another case are other names", `{"txn":{"appId":"a","version":3,"LastUpdated":9},"Add":{}}`,
			delta.Action{Txn: &delta.Txn{AppID: "a", Version: 3}},
		},
		{
			"a commitInfo of other types", `{"commitInfo":{"timestamp":5,"operation":{"x":1},"operationMetrics":{"a":1,"b":"2","c":null,"d":true},"operationParameters":[1],"readVersion":"x","isBlindAppend":null,"txnId":"t","extra":{}}}`,
			delta.Action{CommitInfo: &delta.CommitInfo{Timestamp: 5, OperationMetrics: map[string]string{"a": "1", "b": "2", "d": "true"}, TxnID: "t"}},
		},
		{
			"a vector", `{"add":{"path":"f","size":1,"dataChange":true,"deletionVector":{"storageType":"u","pathOrInlineDv":"x","offset":4,"sizeInBytes":34,"cardinality":6}}}`,
			delta.Action{Add: &delta.Add{Path: "f", Size: 1, DataChange: true, DeletionVector: &delta.DeletionVector{StorageType: "u", PathOrInlineDV: "x", Offset: ptr(int32(4)), SizeInBytes: 34, Cardinality: 6}}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := delta.ParseEntry(1, []byte("\r\n"+c.line+"\r\n"+`{"cdc":{"path":"c"}}`))
			must(t, err)
			if diff := cmp.Diff([]delta.Action{c.want}, e.Actions); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLinesThatAreRefused(t *testing.T) {
	for _, c := range []struct{ line, says string }{
		{`{"add":{"path":"f","dataChange":true}}`, "size"},
		{`{"add":{"path":"f","size":null,"dataChange":true}}`, "size"},
		{`{"add":{"path":"f","size":-1,"dataChange":true}}`, "size"},
		{`{"add":{"path":"f","size":1}}`, "dataChange"},
		{`{"add":{"size":1,"dataChange":true}}`, "path"},
		{`{"add":{"path":"%","size":1,"dataChange":true}}`, "path"},
		{`{"add":{"path":"a%00","size":1,"dataChange":true}}`, "path"},
		{`{"remove":{"path":"f"}}`, "dataChange"},
		{`{"remove":{"dataChange":true}}`, "path"},
		{`{"txn":{"appId":"a"}}`, "version"},
		{`{"txn":{"appId":"a","version":null}}`, "version"},
		{`{"txn":{"version":1}}`, "appId"},
		{`{"txn":{"appId":"a","version":9223372036854775808}}`, "version"},
		{`{"txn":{"appId":"a","version":1},"add":{"path":"f","size":1,"dataChange":true}}`, "several"},
		{`{"txn":{"appId":"a","version":1},"txn":{"appId":"b","version":1}}`, "txn"},
		{`{"protocol":{"minReaderVersion":1}}`, "versions"},
		{`{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"writerFeatures":[]}}`, "readerFeatures"},
		{`{"protocol":{"minReaderVersion":1,"minWriterVersion":7}}`, "writerFeatures"},
		{`{"protocol":{"minReaderVersion":1,"minWriterVersion":2,"writerFeatures":["x"]}}`, "writerFeatures"},
		{`{"metaData":{"id":"x","format":{"provider":"parquet"}}}`, "schemaString"},
		{`{"metaData":{"id":"x","format":{"provider":"orc"},"schemaString":"{}"}}`, "orc"},
		{`{"domainMetadata":{"configuration":"x"}}`, "domain"},
		{`[]`, "line 1"},
		{`{"add":[]}`, "line 1"},
		{"{\"txn\":{\"appId\":\"\xff\",\"version\":1}}", "line 1"},
	} {
		_, err := delta.ParseEntry(1, []byte(c.line))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %q", c.line, err, c.says)
		}
	}
}

// Required fields are written when they are zero, what is absent is not, and the same action makes the same bytes.
func TestLinesThatAreWritten(t *testing.T) {
	e := &delta.Entry{Version: 1, Actions: []delta.Action{
		{Protocol: &delta.Protocol{MinReader: 3, MinWriter: 7, ReaderFeatures: []string{}, WriterFeatures: []string{"b", "a"}}},
		{Metadata: &delta.Metadata{ID: "i", SchemaString: "{}", Format: delta.Format{Provider: "parquet"}}},
		{Add: &delta.Add{Path: "f", PartitionValues: map[string]*string{"z": ptr(""), "a": nil, "m": ptr("<é>")}}},
		{Txn: &delta.Txn{AppID: "q"}},
		{Domain: &delta.DomainMetadata{Domain: "d"}},
		{Remove: (&delta.Add{Path: "f", Size: 3, PartitionValues: map[string]*string{}, BaseRowID: ptr(int64(0))}).Remove(9, true)},
		{CommitInfo: &delta.CommitInfo{Operation: "WRITE", Tags: map[string]string{"b": "2", "a": "1"}, IsBlindAppend: ptr(false), ReadVersion: ptr(int64(0))}},
	}}
	want := `{"commitInfo":{"timestamp":0,"operation":"WRITE","operationParameters":{},"readVersion":0,"isBlindAppend":false,"tags":{"a":"1","b":"2"}}}
{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":[],"writerFeatures":["b","a"]}}
{"metaData":{"id":"i","format":{"provider":"parquet","options":{}},"schemaString":"{}","partitionColumns":[],"configuration":{}}}
{"add":{"path":"f","partitionValues":{"a":null,"m":"<é>","z":""},"size":0,"modificationTime":0,"dataChange":false}}
{"txn":{"appId":"q","version":0}}
{"domainMetadata":{"domain":"d","configuration":"","removed":false}}
{"remove":{"path":"f","deletionTimestamp":9,"dataChange":true,"extendedFileMetadata":true,"partitionValues":{},"size":3,"baseRowId":0}}
`
	if diff := cmp.Diff(want, delta.EncodeEntry(t, e)); diff != "" {
		t.Error(diff)
	}
}
