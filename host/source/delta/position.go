package delta

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
)

const (
	// positionVersion is the version of Extra.
	positionVersion = 1
	// lineVersion is Spark's sourceVersion of the lines that are written; newestLine the last one that can be read.
	lineVersion = 1
	newestLine  = 3
	// maxNumber bounds versions and indexes, so that the next one is a number too.
	maxNumber = 1 << 60
)

// place is a point in the stream: before row number rows of file number index of a version, or of the snapshot of one. What
// follows the last file of a version is the version after it.
type place struct {
	version  int64
	snapshot bool
	index    int64
	rows     int64
}

func after(version int64) place { return place{version: version + 1} }

func (p place) compare(o place) int {
	switch {
	case p.version != o.version:
		return cmp.Compare(p.version, o.version)
	case p.snapshot != o.snapshot && p.snapshot:
		return -1
	case p.snapshot != o.snapshot:
		return 1
	}
	return cmp.Or(cmp.Compare(p.index, o.index), cmp.Compare(p.rows, o.rows))
}

// fileID names a file by its place.
type fileID struct{ version, index int64 }

// position is a checkpoint.Position in parts.
type position struct {
	table string // its id
	at    place
	begin *place   // where the batch that ends here begins, when that is not where the one before ended
	lost  []fileID // files that the batch leaves out
}

// line is Spark's DeltaSourceOffset. Index is that of the last file that was read whole, -1 before the first.
type line struct {
	SourceVersion int64  `json:"sourceVersion"`
	Table         string `json:"reservoirId"`
	Version       *int64 `json:"reservoirVersion"`
	Index         *int64 `json:"index"`
	Snapshot      bool   `json:"isStartingVersion"`
}

type extra struct {
	V     int         `json:"v"`
	Rows  int64       `json:"rows,omitempty"` // read of the file after index
	Begin *extraPlace `json:"begin,omitempty"`
	Lost  [][2]int64  `json:"lost,omitempty"` // version and index
}

type extraPlace struct {
	Version  int64 `json:"version"`
	Snapshot bool  `json:"snapshot,omitempty"`
}

func (p *position) format() (checkpoint.Position, error) {
	index := p.at.index - 1
	l, err := json.Marshal(line{SourceVersion: lineVersion, Table: p.table, Version: &p.at.version, Index: &index, Snapshot: p.at.snapshot})
	if err != nil {
		return checkpoint.Position{}, fmt.Errorf("position: %w", err)
	}
	x := extra{V: positionVersion, Rows: p.at.rows}
	if p.begin != nil {
		x.Begin = &extraPlace{p.begin.version, p.begin.snapshot}
	}
	for _, f := range p.lost {
		x.Lost = append(x.Lost, [2]int64{f.version, f.index})
	}
	e, err := json.Marshal(x)
	if err != nil {
		return checkpoint.Position{}, fmt.Errorf("position: %w", err)
	}
	return checkpoint.Position{Line: string(l), Extra: string(e)}, nil
}

// parsePosition reads what format wrote, and Spark's own lines, which have no extra. A position of nothing is version none.
func parsePosition(p checkpoint.Position) (*position, error) {
	if p.IsZero() {
		return &position{at: place{version: none}}, nil
	}
	out, err := parseLine(p.Line)
	if err != nil || p.Extra == "" {
		return out, err
	}
	var x extra
	if err := json.Unmarshal([]byte(p.Extra), &x); err != nil {
		return nil, badPosition(p.Extra, err)
	}
	if x.V > positionVersion {
		return nil, newer("position", int64(x.V), positionVersion)
	}
	if x.Rows < 0 || x.Begin != nil && (x.Begin.Version < 0 || x.Begin.Version > maxNumber) {
		return nil, badPosition(p.Extra, errors.New("a number is out of range"))
	}
	out.at.rows = x.Rows
	if x.Begin != nil {
		out.begin = &place{version: x.Begin.Version, snapshot: x.Begin.Snapshot}
	}
	for _, f := range x.Lost {
		out.lost = append(out.lost, fileID{f[0], f[1]})
	}
	return out, nil
}

func parseLine(text string) (*position, error) {
	var l line
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		return nil, badPosition(text, err)
	}
	switch {
	case l.SourceVersion > newestLine:
		return nil, newer("line of a position", l.SourceVersion, newestLine)
	case l.Version != nil && *l.Version > maxNumber || l.Index != nil && *l.Index > maxNumber:
		return nil, badPosition(text, errors.New("a number is too large"))
	case l.SourceVersion < 1 || l.Table == "" || l.Version == nil || *l.Version < 0 || l.Index == nil:
		return nil, badPosition(text, errors.New("sourceVersion, reservoirId, reservoirVersion or index is missing"))
	}
	// Any negative index is before the first file: newer versions of Spark write -100.
	return &position{table: l.Table, at: place{version: *l.Version, snapshot: l.Snapshot, index: max(*l.Index, -1) + 1}}, nil
}

func newer(what string, is, known int64) error {
	return fault.New(CodeVersion, "", fmt.Errorf("the %s of a delta source has version %d, this program knows %d", what, is, known),
		"go on with the newer program that wrote it")
}
