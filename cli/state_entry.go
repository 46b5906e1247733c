package cli

import (
	"bufio"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/statestore"
)

// entryShown is an entry of state, or a timer, as JSON. What is no text stands under a name that ends with Base64.
type entryShown struct {
	Transform   string          `json:"transform"`
	Table       string          `json:"table,omitempty"`
	Timer       string          `json:"timer,omitempty"` // event or processing
	At          string          `json:"at,omitempty"`    // when the timer is due
	Key         *string         `json:"key,omitempty"`
	KeyBase64   string          `json:"keyBase64,omitempty"`
	Sub         *string         `json:"sub,omitempty"`
	SubBase64   string          `json:"subBase64,omitempty"`
	Value       json.RawMessage `json:"value,omitempty"`
	ValueBase64 *string         `json:"valueBase64,omitempty"`
	Expiry      string          `json:"expiry,omitempty"`
}

// showEntry makes JSON of an entry.
func showEntry(t pickedTable, r *statestore.Row) *entryShown {
	s := &entryShown{Transform: t.transform, Table: t.table.Name}
	s.Key, s.KeyBase64 = textOrBase64(r.Key)
	if len(r.Sub) > 0 {
		s.Sub, s.SubBase64 = textOrBase64(r.Sub)
	}
	if r.ExpiryMS != 0 {
		s.Expiry = timeOf(r.ExpiryMS)
	}
	if r.Timer {
		s.Timer, s.At = "event", timeOf(r.AtMS)
		if r.Domain != 0 {
			s.Timer = "processing"
		}
		return s
	}
	if s.Value = valueJSON(t.table.Type, r.Value); s.Value == nil {
		b := base64.StdEncoding.EncodeToString(r.Value)
		s.ValueBase64 = &b
	}
	return s
}

// valueJSON is a value as its table's type says; nil when it is not of that type, or no text.
func valueJSON(kind string, value []byte) json.RawMessage {
	switch {
	case kind == abi.TableJSON && abi.ValidJSON(value):
		return append(json.RawMessage{}, value...)
	case kind == abi.TableI64 && len(value) == 8:
		return fmt.Appendf(nil, "%d", int64(binary.LittleEndian.Uint64(value)))
	case kind == abi.TableBytes && isText(value):
		return abi.AppendJSONString(nil, value)
	}
	return nil
}

// textOrBase64 is a key for people: as it is when it is text.
func textOrBase64(b []byte) (text *string, encoded string) {
	if !isText(b) {
		return nil, base64.StdEncoding.EncodeToString(b)
	}
	s := string(b)
	return &s, ""
}

// isText reports whether bytes are UTF-8 without control characters but for line ends and tabs: numbers of a few bytes often
// are UTF-8 too.
func isText(b []byte) bool {
	return utf8.Valid(b) && !strings.ContainsFunc(string(b), func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' })
}

func base64Of(text string) ([]byte, error) { return base64.StdEncoding.DecodeString(text) }

func entriesPage(entries []*entryShown) *page {
	p := &page{}
	p.row("TABLE", "SUB", "VALUE", "EXPIRY")
	for _, s := range entries {
		name, value := s.Transform+"."+s.Table, string(s.Value)
		switch {
		case s.Timer != "":
			name, value = s.Transform, s.Timer+" timer at "+s.At
		case s.ValueBase64 != nil:
			value = "base64:" + *s.ValueBase64
		}
		sub := ""
		switch {
		case s.Sub != nil:
			sub = *s.Sub
		case s.SubBase64 != "":
			sub = "base64:" + s.SubBase64
		}
		p.row(name, orNone(sub), shortened(value, 200), orNone(s.Expiry))
	}
	return p
}

// entryWriter writes entries one a line.
type entryWriter struct {
	out *bufio.Writer
	enc *json.Encoder
}

func newEntryWriter(w io.Writer) *entryWriter {
	out := bufio.NewWriterSize(w, 64<<10)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return &entryWriter{out: out, enc: enc}
}

func (w *entryWriter) write(t pickedTable, r *statestore.Row) error {
	return w.enc.Encode(showEntry(t, r))
}

func (w *entryWriter) flush() error { return w.out.Flush() }
