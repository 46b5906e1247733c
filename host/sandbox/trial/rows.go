package trial

import (
	"fmt"

	"github.com/wasmill/wasmill/abi"
)

// RowCheck looks at a value of an output with binary rows. The error says why it is not one that a sink takes: malformed is one
// that no data can excuse.
type RowCheck func(row []byte) (malformed bool, err error)

// rowChecks are those of a module's outputs, by port; nil where there are no rows.
type rowChecks [abi.MaxPorts]RowCheck

// rowCount is what was seen of the rows of one output.
type rowCount struct {
	seen, unfit, malformed int64
	why                    string // of the first malformed one, or else of the first that does not fit
}

// look counts the value of a record; null is no row.
func (c *rowCount) look(check RowCheck, value []byte) {
	if check == nil || value == nil {
		return
	}
	c.seen++
	malformed, err := check(value)
	if err == nil {
		return
	}
	c.unfit++
	if malformed {
		c.malformed++
	}
	if c.why == "" || malformed && c.malformed == 1 {
		c.why = err.Error()
	}
}

// rowsOf makes the checks of a manifest's outputs, if there is a way to make one. Columns that nobody can read fail.
func (r *Report) rowsOf(m *abi.Manifest, of func(columns string) (RowCheck, error)) (checks rowChecks) {
	for p, o := range m.Outputs {
		if o.Rows == 0 || of == nil {
			continue
		}
		var err error
		if checks[p], err = of(o.Columns); err != nil {
			r.add("has columns of "+o.Name, Fail, "no sink takes its rows: %v", err)
		}
	}
	return checks
}

// rows judges the binary rows that came out. Single ones may hold what does not fit, as the data is made up.
func (r *Report) rows(checks *rowChecks, inputs []input, runs []outcome) {
	for p, o := range r.Info.Manifest.Outputs {
		if checks[p] == nil {
			continue
		}
		var all rowCount
		for i := range runs {
			c := &runs[i].rows[p]
			if c.why != "" && (all.why == "" || all.malformed == 0 && c.malformed > 0) {
				all.why = fmt.Sprintf("the first of %s: %s", inputs[i].name, c.why)
			}
			all.seen, all.unfit, all.malformed = all.seen+c.seen, all.unfit+c.unfit, all.malformed+c.malformed
		}
		name := "writes rows of " + o.Name
		switch {
		case all.malformed > 0:
			r.add(name, Fail, "%d of %d are not as its columns say, %s", all.malformed, all.seen, all.why)
		case all.unfit == 0:
			r.add(name, Pass, "%d, and all fit its columns", all.seen)
		case all.unfit == all.seen:
			r.add(name, Warn, "none of %d fits its columns, %s; a sink would set them aside", all.seen, all.why)
		default:
			r.add(name, Pass, "%d, of which a sink would set %d aside, %s", all.seen, all.unfit, all.why)
		}
	}
}
