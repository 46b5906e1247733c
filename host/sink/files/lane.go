package files

import (
	"strconv"
	"strings"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/sink"
)

// tableLane takes JSON objects as typed rows.
type tableLane struct {
	table     *rows.Table
	partition []int // columns that become directories
	room      int   // bytes that their names and a slash after each may have together
	scratch   []byte
}

func (l *tableLane) Append(r *abi.Record) error {
	if err := l.table.Append(r.Value); err != nil {
		return err
	}
	if len(l.partition) == 0 {
		return nil
	}
	if m := l.checkPartition(l.table.Len() - 1); m != nil {
		l.table.Truncate(l.table.Len() - 1)
		return m
	}
	return nil
}

// What common file systems take: of one name, and of a whole path with the directory and the file.
const (
	maxDirName = 255
	maxPath    = 4095
)

// checkPartition refuses what cannot be told apart again or makes no directory name: with it, publishing could fail or a
// reader would see null.
func (l *tableLane) checkPartition(row int) *sink.Misfit {
	for _, c := range l.partition {
		v := l.table.Column(c)
		if v.Type.Kind != rows.String || v.Valid[row] == 0 {
			continue
		}
		name := l.table.Schema().Column(c).Name
		b := v.Bytes(row)
		if len(b) == 0 || string(b) == nullPartition {
			return &sink.Misfit{
				Code: "range", Column: name,
				Reason: strconv.Quote(string(b)) + " is a partition value that readers take for null",
			}
		}
		l.scratch = appendPartition(l.scratch[:0], name, v, row)
		if len(l.scratch) > maxDirName {
			return &sink.Misfit{
				Code: "length", Column: name,
				Reason: "the partition value makes a directory name of " + strconv.Itoa(len(l.scratch)) + " bytes; 255 is the most",
			}
		}
	}
	if len(l.partition)*(maxDirName+1) <= l.room {
		return nil
	}
	l.scratch = append(appendDir(l.scratch[:0], l.table, l.partition, row), '/')
	if over := len(l.scratch) - l.room; over > 0 {
		return &sink.Misfit{
			Code: "length",
			Reason: "the partition values make a path of up to " + strconv.Itoa(maxPath+over) + " bytes with the sink's directory and the file; " +
				strconv.Itoa(maxPath) + " is the most",
		}
	}
	return nil
}

func (l *tableLane) Reset()       { l.table.Reset() }
func (l *tableLane) Rows() int64  { return int64(l.table.Len()) }
func (l *tableLane) Bytes() int64 { return l.table.Bytes() }

// rawLane takes values as lines.
type rawLane struct {
	lines   rows.Lines
	updates bool // a record without a value is a deletion, not a misfit
	scratch []byte
}

func (l *rawLane) Append(r *abi.Record) (err error) {
	if r.Value != nil || !l.updates {
		return l.lines.Append(r.Value)
	}
	if l.scratch, err = rows.AppendDeletion(l.scratch[:0], r.Key); err != nil {
		return err
	}
	return l.lines.Append(l.scratch)
}

func (l *rawLane) Reset()       { l.lines.Reset() }
func (l *rawLane) Rows() int64  { return int64(l.lines.Len()) }
func (l *rawLane) Bytes() int64 { return l.lines.Bytes() }

// nullPartition is what Hive and Spark call the directory of null.
const nullPartition = "__HIVE_DEFAULT_PARTITION__"

// appendPartition appends "name=value" as Spark names a partition's directory.
func appendPartition(dst []byte, name string, v *rows.Vector, row int) []byte {
	dst = append(appendEscaped(dst, []byte(name)), '=')
	if v.Valid[row] == 0 {
		return append(dst, nullPartition...)
	}
	switch v.Type.Kind {
	case rows.String:
		return appendEscaped(dst, v.Bytes(row))
	case rows.Timestamp:
		var text [32]byte
		return appendEscaped(dst, rows.AppendTimestamp(text[:0], v.I64[row], ' ', false))
	}
	return v.AppendText(dst, row)
}

// appendEscaped escapes as Spark's ExternalCatalogUtils does. NUL, which Spark leaves and no file system takes, is escaped
// like the other control characters.
func appendEscaped(dst, text []byte) []byte {
	const hex = "0123456789ABCDEF"
	for _, c := range text {
		if c < 0x20 || c == 0x7f || strings.IndexByte("\"#%'*/:=?\\{[]^", c) >= 0 {
			dst = append(dst, '%', hex[c>>4], hex[c&15])
			continue
		}
		dst = append(dst, c)
	}
	return dst
}
