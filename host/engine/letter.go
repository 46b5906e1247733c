package engine

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/sink"
)

// Codes of the host's own dead letters; a guest's are not negative.
const (
	CodeMisfit    = -1 // the record does not fit its sink's schema
	CodeTrap      = -2 // the guest trapped on it
	CodeBadStatus = -3 // the guest returned a nonzero status on it
	CodeTooLarge  = -4 // it exceeds what a frame can carry
	CodeReject    = -5 // what lies there in the source is no record
	CodeNoKey     = -6 // a keyed stage reads it and it has no key, or one that is too long
)

// letterCut is how much of a record a dead letter carries, in bytes.
type letterCut struct {
	value int
	other int // of the key, and of names and values of headers together
}

// letterCuts are tried one after the other until the sink takes the letter: what does not fit one sink may be too large for
// that of the letters too.
var letterCuts = [...]letterCut{{1 << 20, math.MaxInt}, {64 << 10, 64 << 10}, {4 << 10, 4 << 10}, {0, 0}}

// letterForm is how a letter says bytes that are no text. The zero form is that of a sink that takes any JSON.
type letterForm struct {
	// binary finds the columns that take bytes in base64; nil where there are none.
	binary func(path ...string) bool
	// plain is for columns of texts: an object there would fit none of them, nor NUL those of every database.
	plain bool
}

// formOf is the form for a lane's columns.
func formOf(l sink.Lane) letterForm {
	if c, ok := l.(sink.Columned); ok {
		return letterForm{binary: c.Binary}
	}
	return letterForm{}
}

// origin is where a record came from.
type origin struct {
	edge      Edge
	split     string
	offset    int64
	partition int32
}

// letter is one record set aside, with the reason.
type letter struct {
	poison bool // a lane was started again without it
	cut    bool // the record was cut before it came here
	code   int32
	word   string // a stable word for the code
	reason string
	where  string // in the guest, for messages and logs; no part of what is written
	stage  string
	module string
	origin origin
	rec    *abi.Record
	// misfits is the column that it does not fit, which the reason names too.
	misfits field
}

// field is a column of a sink; "" for none in particular.
type field struct{ sink, column string }

// said is the reason, and where in the guest it came from.
func (lt *letter) said() string {
	if lt.where == "" {
		return lt.reason
	}
	return lt.reason + ", " + lt.where
}

// letters is what one part of a lane has set aside, in order.
type letters struct {
	list    []letter
	buf     buffer
	alone   int     // set aside or skipped, but poison
	why     reasons // of those, where they are bounded
	poison  int
	skipped int
}

func (ls *letters) reset() {
	ls.list, ls.why = ls.list[:0], ls.why[:0]
	ls.buf.reset()
	ls.alone, ls.poison, ls.skipped = 0, 0, 0
}

func (ls *letters) add(lt letter, r *abi.Record) {
	lt.rec = copyOf(&ls.buf, r)
	ls.list = append(ls.list, lt)
}

// fill gives a letter the record that was not at hand when it was written.
func (ls *letters) fill(at int, from origin, r *abi.Record) {
	ls.list[at].origin = from
	ls.list[at].rec = copyOf(&ls.buf, r)
}

// copyOf returns a copy that does not move when more are added.
func copyOf(b *buffer, r *abi.Record) *abi.Record {
	c := *b.add(r)
	return &c
}

// letterJSON is a dead letter as it is published. Its form outlives a version.
type letterJSON struct {
	Query     string         `json:"query"`
	Batch     int64          `json:"batch"`
	Stage     string         `json:"stage"`
	Module    string         `json:"module"`
	Source    string         `json:"source"`
	Split     string         `json:"split"`
	Partition int32          `json:"partition"`
	Offset    int64          `json:"offset"`
	Time      string         `json:"time"`
	Code      int32          `json:"code"`
	Word      string         `json:"word"`
	Reason    string         `json:"reason"`
	Key       any            `json:"key"`
	Value     any            `json:"value"`
	Headers   []letterHeader `json:"headers"`
	Truncated bool           `json:"truncated"`
}

type letterHeader struct {
	Name  string `json:"name"`
	Value any    `json:"value"`
}

// record makes the output record of a letter: the JSON as value, the original key as key, both as far as the cut allows.
func (lt *letter) record(g *Graph, b *batchRun, cut letterCut, form letterForm) (*abi.Record, error) {
	out := letterJSON{
		Query: b.query, Batch: int64(b.plan.Batch), Stage: lt.stage, Module: lt.module,
		Source: g.sourceName(lt.origin.edge), Split: lt.origin.split, Partition: lt.origin.partition, Offset: lt.origin.offset,
		Time: time.UnixMilli(b.plan.TimeMS).UTC().Format("2006-01-02T15:04:05.000Z"),
		Code: lt.code, Word: lt.word, Reason: form.text([]byte(lt.reason)), Headers: []letterHeader{},
	}
	out.Truncated = lt.cut
	short := func(p []byte, most int) []byte {
		if len(p) <= most {
			return p
		}
		out.Truncated = true
		if utf8.Valid(p) {
			for most > 0 && !utf8.RuneStart(p[most]) {
				most--
			}
		}
		return p[:most]
	}
	key := short(lt.rec.Key, cut.other)
	out.Key, out.Value = form.bytes(key, "key"), form.bytes(short(lt.rec.Value, cut.value), "value")
	room := cut.other
	for _, h := range lt.rec.Headers {
		size := len(h.Name) + len(h.Value)
		if size > room {
			out.Truncated = true
			continue
		}
		room -= size
		out.Headers = append(out.Headers, letterHeader{Name: form.text(h.Name), Value: form.bytes(h.Value, "headers", "value")})
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(out); err != nil {
		return nil, fmt.Errorf("write a dead letter: %w", err)
	}
	return &abi.Record{Key: key, Value: bytes.TrimRight(text.Bytes(), "\n"), Index: abi.NoIndex}, nil
}

// bytes is base64 for a column of bytes. For others it is a JSON string for text and {"base64": ..} for other bytes, in a plain
// letter as a text of its own. Null is null.
func (f letterForm) bytes(p []byte, path ...string) any {
	switch {
	case p == nil:
		return nil
	case f.binary != nil && f.binary(path...):
		return base64.StdEncoding.EncodeToString(p)
	case utf8.Valid(p) && (!f.plain || bytes.IndexByte(p, 0) < 0):
		return string(p)
	case f.plain:
		return `{"base64":"` + base64.StdEncoding.EncodeToString(p) + `"}`
	}
	return map[string]string{"base64": base64.StdEncoding.EncodeToString(p)}
}

// text makes a text of what should be one.
func (f letterForm) text(p []byte) string {
	text := string(p)
	if !utf8.ValidString(text) {
		text = string([]rune(text))
	}
	if f.plain {
		return strings.ReplaceAll(text, "\x00", string(utf8.RuneError))
	}
	return text
}

// sourceName names where an edge comes from.
func (g *Graph) sourceName(e Edge) string {
	if e.Source >= 0 {
		return g.Sources[e.Source].Name
	}
	if e.Stage >= 0 {
		return g.Stages[e.Stage].Name
	}
	return ""
}
