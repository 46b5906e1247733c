package partition

import (
	"strconv"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/sink"
)

// Checker refuses rows whose values make no folder. It is not safe for concurrent use.
type Checker struct {
	// Columns are those that become folders.
	Columns []int
	// Room is how many bytes the folders' names and a slash after each may have together.
	Room    int
	scratch []byte
}

// Check refuses what cannot be told apart again or makes no folder's name: with it, publishing could fail or a reader would
// see null. nil: the row is fine.
func (c *Checker) Check(t *rows.Table, row int) *sink.Misfit {
	for _, col := range c.Columns {
		v := t.Column(col)
		if v.Type.Kind != rows.String || v.Valid[row] == 0 {
			continue
		}
		name := t.Schema().Column(col).Name
		b := v.Bytes(row)
		if len(b) == 0 || string(b) == Null {
			return &sink.Misfit{
				Code: "range", Column: name,
				Reason: strconv.Quote(string(b)) + " is a partition value that readers take for null",
			}
		}
		c.scratch = appendFolder(c.scratch[:0], name, v, row)
		if len(c.scratch) > MaxName {
			return &sink.Misfit{
				Code: "length", Column: name,
				Reason: "the partition value makes a directory name of " + strconv.Itoa(len(c.scratch)) + " bytes; 255 is the most",
			}
		}
	}
	if len(c.Columns)*(MaxName+1) <= c.Room {
		return nil
	}
	c.scratch = append(AppendDir(c.scratch[:0], t, c.Columns, row), '/')
	if over := len(c.scratch) - c.Room; over > 0 {
		return &sink.Misfit{
			Code: "length",
			Reason: "the partition values make a path of up to " + strconv.Itoa(MaxPath+over) + " bytes with the sink's directory and the file; " +
				strconv.Itoa(MaxPath) + " is the most",
		}
	}
	return nil
}
