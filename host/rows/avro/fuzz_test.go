package avro

import (
	"bytes"
	"errors"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/wasmill/wasmill/host/rows/jsonvalue"
	"github.com/wasmill/wasmill/host/sink"
)

// FuzzPayload reads hostile bytes by hostile schemas. What reads is well-formed JSON, is read alike twice, and is written
// again as a payload that reads the same.
func FuzzPayload(f *testing.F) {
	for _, c := range goldenCases(f) {
		f.Add(c.Schema, c.payload(f))
	}
	f.Fuzz(func(t *testing.T, schema string, payload []byte) {
		if len(payload) > 1<<12 {
			return
		}
		s, err := Parse(schema, nil)
		if err != nil {
			return
		}
		got, err := s.AppendJSON(nil, payload)
		if err != nil || len(got) > 1<<20 {
			return
		}
		if !jsontext.Value(got).IsValid(jsontext.AllowDuplicateNames(true)) {
			t.Fatalf("no JSON: %s", got)
		}
		back, err := encode(s, string(got))
		if m := (*sink.Misfit)(nil); errors.As(err, &m) && (m.Code == "range" || m.Code == "length") {
			return // a decimal of more digits than its schema says, or a payload that grows by sizes that it left out
		}
		if err != nil {
			t.Fatalf("%s is not written again: %v", got, err)
		}
		again, err := s.AppendJSON(nil, back)
		if err != nil || !bytes.Equal(again, got) {
			t.Fatalf("%s reads as %s, %v", got, again, err)
		}
	})
}

// FuzzDocument writes hostile documents. What does not fit is a misfit, what is written reads.
func FuzzDocument(f *testing.F) {
	for _, c := range goldenCases(f) {
		f.Add(c.Schema, c.JSON)
	}
	f.Fuzz(func(t *testing.T, schema, text string) {
		s, err := Parse(schema, nil)
		if err != nil {
			return
		}
		var d jsonvalue.Doc
		v, err := d.Parse([]byte(text))
		if err != nil {
			return
		}
		b, err := s.NewEncoder().Append(nil, v)
		if m := (*sink.Misfit)(nil); err != nil && (!errors.As(err, &m) || m.Code == "") {
			t.Fatalf("%v is no misfit", err)
		}
		if err != nil || len(b) > 1<<20 {
			return
		}
		if _, err := s.AppendJSON(nil, b); err != nil && !errors.Is(err, errTime) {
			t.Fatalf("%x does not read: %v", b, err)
		}
	})
}
