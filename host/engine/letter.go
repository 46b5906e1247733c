package engine

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/wasmill/wasmill/abi"
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
}

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
	alone   int // set aside or skipped, but poison
	poison  int
	skipped int
}

func (ls *letters) reset() {
	ls.list = ls.list[:0]
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
func (lt *letter) record(g *Graph, b *batchRun, cut letterCut) (*abi.Record, error) {
	out := letterJSON{
		Query: b.query, Batch: int64(b.plan.Batch), Stage: lt.stage, Module: lt.module,
		Source: g.sourceName(lt.origin.edge), Split: lt.origin.split, Partition: lt.origin.partition, Offset: lt.origin.offset,
		Time: time.UnixMilli(b.plan.TimeMS).UTC().Format("2006-01-02T15:04:05.000Z"),
		Code: lt.code, Word: lt.word, Reason: lt.reason, Headers: []letterHeader{},
	}
	out.Truncated = lt.cut
	short := func(p []byte, most int) []byte {
		if len(p) <= most {
			return p
		}
		out.Truncated = true
		return p[:most]
	}
	key := short(lt.rec.Key, cut.other)
	out.Key, out.Value = textOrBase64(key), textOrBase64(short(lt.rec.Value, cut.value))
	room := cut.other
	for _, h := range lt.rec.Headers {
		size := len(h.Name) + len(h.Value)
		if size > room {
			out.Truncated = true
			continue
		}
		room -= size
		out.Headers = append(out.Headers, letterHeader{Name: validText(h.Name), Value: textOrBase64(h.Value)})
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(out); err != nil {
		return nil, fmt.Errorf("write a dead letter: %w", err)
	}
	return &abi.Record{Key: key, Value: bytes.TrimRight(text.Bytes(), "\n"), Index: abi.NoIndex}, nil
}

// textOrBase64 is a JSON string for text, {"base64": ..} for other bytes, null for null.
func textOrBase64(p []byte) any {
	switch {
	case p == nil:
		return nil
	case utf8.Valid(p):
		return string(p)
	}
	return map[string]string{"base64": base64.StdEncoding.EncodeToString(p)}
}

// validText makes a text of what should be one.
func validText(p []byte) string {
	if utf8.Valid(p) {
		return string(p)
	}
	return string([]rune(string(p)))
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
