package protobuf

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/wasmill/wasmill/host/rows/jsonvalue"
	"github.com/wasmill/wasmill/host/sink"
)

// FuzzPayload reads hostile bytes. What reads is well-formed JSON and says the same as Google's own reader says: written
// again, that finds an equal message.
func FuzzPayload(f *testing.F) {
	all := schemas{}
	var messages []Message
	for _, c := range goldenCases(f) {
		m := all.message(f, c.Source, c.Message)
		payload, err := hex.DecodeString(c.Payload)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(len(messages), payload)
		messages = append(messages, m)
	}
	f.Fuzz(func(t *testing.T, which int, payload []byte) {
		m := messages[max(which, 0)%len(messages)]
		got, err := m.AppendJSON(nil, payload)
		if err != nil || len(got) > 1<<20 {
			return
		}
		if !jsontext.Value(got).IsValid(jsontext.AllowDuplicateNames(true)) {
			t.Fatalf("no JSON: %s", got)
		}
		want := dynamicpb.NewMessage(m.m.desc)
		read := proto.UnmarshalOptions{DiscardUnknown: true}
		if err := read.Unmarshal(payload, want); err != nil {
			t.Fatalf("%s is read from what Google's reader refuses: %v", got, err)
		}
		back, err := encode(m, string(got))
		if err != nil {
			t.Fatalf("%s is not written again: %v", got, err)
		}
		same := dynamicpb.NewMessage(m.m.desc)
		if err := read.Unmarshal(back, same); err != nil {
			t.Fatalf("%s is written as %x: %v", got, back, err)
		}
		if !proto.Equal(want, same) && !strings.Contains(string(got), `"any"`) {
			t.Fatalf("%s\nis %v\nwritten again it is %v", got, want, same)
		}
	})
}

// FuzzDocument writes hostile documents. What does not fit is a misfit, what is written Google's reader takes.
func FuzzDocument(f *testing.F) {
	m := first(f, everything)
	for _, text := range []string{`{"i":1,"table":{"1":"x"}}`, `{"at":"2013-01-31T10:00:00Z","took":"1.5s"}`, `{"any":{"a":[1,null,"x"]},"st":{"b":true},"l":[1]}`, `{"camel_case":{"many":[{},{"wrapped":5}]}}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var d jsonvalue.Doc
		v, err := d.Parse([]byte(text))
		if err != nil {
			return
		}
		b, err := m.Append(nil, v)
		if misfit := (*sink.Misfit)(nil); err != nil && (!errors.As(err, &misfit) || misfit.Code == "") {
			t.Fatalf("%v is no misfit", err)
		}
		if err != nil {
			return
		}
		if err := proto.Unmarshal(b, dynamicpb.NewMessage(m.m.desc)); err != nil {
			t.Fatalf("%x: %v", b, err)
		}
		if _, err := m.AppendJSON(nil, b); err != nil {
			t.Fatalf("%x does not read: %v", b, err)
		}
	})
}
