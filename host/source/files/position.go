package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
)

// positionVersion is the version of Extra. Those without an entry that begins inside its file are written as version 1.
const positionVersion = 2

// place is a point in a file: Off counts its decoded bytes, Line its lines (csv and parquet: rows) before that point. In
// Parquet, where rows have no bytes of their own, Off is their share of the footer's uncompressed size.
type place struct {
	Off  int64 `json:"offset"`
	Line int64 `json:"line"`
}

func (p *place) negative() bool { return p != nil && (p.Off < 0 || p.Line < 0) }

// entry is one line of the file source log: Spark's three keys, then ours. A file that was planned to its end in one go
// has the place of its end.
type entry struct {
	URI  string `json:"path"`
	Time int64  `json:"timestamp"` // modification time, milliseconds
	Log  int64  `json:"batchId"`   // id of the log entry, not of a batch
	Size int64  `json:"size"`      // bytes on disk
	ETag string `json:"etag"`      // digest of both ends of the file, 16 hex digits; "" in Spark's own entries
	End  *place `json:"end,omitempty"`
	// Begin is where reading it begins: what stands before was read of the file as it was before it changed.
	Begin *cut   `json:"begin,omitempty"`
	Path  string `json:"-"`
}

// cut is a place that a batch ended at. Sum is the digest of the decoded bytes before it, 8 hex digits; "" not known.
type cut struct {
	place
	Sum string `json:"sum,omitempty"`
}

// at is where a batch ended inside a file.
type at struct {
	File entry `json:"file"`
	cut
}

// position is a checkpoint.Position in parts. Extra must name all that is not known to be on disk: the logs after Synced
// stand in Tail.
type position struct {
	log    int64  // last id in the file source log, -1 none
	Base   string // URI of the directory or file that the source had when it planned, "" unknown
	Synced int64
	Sum    string  // digest of the entries of log, 16 hex digits
	Tail   []entry // entries of the logs after Synced
	At     *at     // the batch ended inside this file
	Done   *place  // where the file of the position before ended, if it was cut and ended in this batch
	begins bool    // an entry of log begins inside its file
}

type extra struct {
	V      int     `json:"v"`
	Base   string  `json:"base,omitempty"`
	Synced int64   `json:"synced"`
	Sum    string  `json:"sum,omitempty"`
	Tail   []entry `json:"tail,omitempty"`
	At     *at     `json:"at,omitempty"`
	Done   *place  `json:"done,omitempty"`
}

func (p *position) format() (checkpoint.Position, error) {
	b, err := marshal(extra{V: p.version(), Base: p.Base, Synced: p.Synced, Sum: p.Sum, Tail: p.Tail, At: p.At, Done: p.Done})
	if err != nil {
		return checkpoint.Position{}, fmt.Errorf("position: %w", err)
	}
	return checkpoint.Position{Line: `{"logOffset":` + strconv.FormatInt(p.log, 10) + `}`, Extra: string(b)}, nil
}

// version is the least version that knows all that the position holds.
func (p *position) version() int {
	begins := p.begins
	for i := range p.Tail {
		begins = begins || p.Tail[i].Begin != nil
	}
	if begins {
		return 2
	}
	return 1
}

// parsePosition reads what format wrote, and Spark's own lines, which have no extra.
func parsePosition(p checkpoint.Position) (*position, error) {
	if p.IsZero() {
		return &position{log: -1, Synced: -1}, nil
	}
	k, err := parseLine(p.Line)
	if err != nil {
		return nil, badPosition(p.Line, err)
	}
	if p.Extra == "" {
		return &position{log: k, Synced: k}, nil
	}
	var v struct{ V int }
	if err := json.Unmarshal([]byte(p.Extra), &v); err != nil {
		return nil, badPosition(p.Extra, err)
	}
	if v.V > positionVersion {
		return nil, fault.New(CodeVersion, "", fmt.Errorf("the position of a files source has version %d, this program knows %d", v.V, positionVersion),
			"go on with the newer version of Wasmill that wrote it")
	}
	var x extra
	if err := json.Unmarshal([]byte(p.Extra), &x); err != nil {
		return nil, badPosition(p.Extra, err)
	}
	out := &position{log: k, Base: x.Base, Synced: x.Synced, Sum: x.Sum, Tail: x.Tail, At: x.At, Done: x.Done}
	if err := out.check(); err != nil {
		return nil, badPosition(p.Extra, err)
	}
	return out, nil
}

func parseLine(line string) (int64, error) {
	line = strings.TrimSpace(line)
	if k, err := strconv.ParseInt(line, 10, 64); err == nil && k >= 0 {
		return k, nil
	}
	var l struct {
		LogOffset *int64 `json:"logOffset"`
	}
	if err := json.Unmarshal([]byte(line), &l); err != nil {
		return 0, err
	}
	if l.LogOffset == nil || *l.LogOffset < 0 {
		return 0, errors.New("no logOffset")
	}
	return *l.LogOffset, nil
}

func (p *position) check() error {
	if p.Synced < -1 || p.Synced > p.log {
		return errors.New("synced lies outside the log")
	}
	if p.Base != "" {
		if _, err := fromURI(p.Base); err != nil {
			return err
		}
	}
	last := p.Synced
	for i := range p.Tail {
		e := &p.Tail[i]
		if e.Log < last || e.Log <= p.Synced || e.Log > p.log {
			return errors.New("tail is out of order")
		}
		last = e.Log
		if err := e.resolve(); err != nil {
			return err
		}
	}
	if p.At == nil {
		return nil
	}
	if p.At.Off < 0 || p.At.Line < 0 {
		return errors.New("negative place")
	}
	return p.At.File.resolve()
}

// resolve fills in what JSON leaves out and checks what it holds.
func (e *entry) resolve() (err error) {
	if e.Size < 0 || e.End.negative() || e.Begin != nil && e.Begin.negative() {
		return errors.New("negative size")
	}
	e.Path, err = fromURI(e.URI)
	return err
}

// marshal is json.Marshal without the escapes meant for HTML.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
