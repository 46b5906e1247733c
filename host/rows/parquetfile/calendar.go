package parquetfile

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"github.com/wasmill/wasmill/host/rows"
)

// Days since 1970 from which on nothing changes between Spark's old calendar and that of everyone else.
const (
	gregorianDay = -141_427 // 1582-10-15, before which the old one is Julian
	zonedDay     = -25_567  // 1900-01-01: before it the two also have different offsets of most time zones
)

// julianEpoch is the Julian day of 1970-01-01, by which INT96 counts.
const julianEpoch = 2_440_588

// Calendar says how a file counts dates and times. Spark before 3.0 counted them by a calendar that is Julian before
// 15 October 1582, times by the clock of its zone; later ones do so when they are told to, and say it in the footer.
type Calendar struct {
	dates, times, int96 *Rebase // for each what brings it into the calendar of this package, or nil
}

// CalendarOf reads a footer as Spark does, and doubts what Spark leaves to a setting: files of Spark before 2.4.6 name no
// version.
func CalendarOf(file *parquet.File) (c Calendar) {
	has := func(key string) bool { _, ok := file.Lookup(key); return ok }
	const legacyDateTime, legacyInt96 = "org.apache.spark.legacyDateTime", "org.apache.spark.legacyINT96"
	version, known := file.Lookup("org.apache.spark.version")
	if !known {
		if has("org.apache.spark.sql.parquet.row.metadata") || has(legacyDateTime) || has(legacyInt96) {
			const why = "the file names no version of Spark and may count it by the Julian calendar"
			c.dates = &Rebase{until: gregorianDay, refused: untold("a date before 1582-10-15", why)}
			c.times = &Rebase{until: zonedDay, refused: untold(oldTime, why)}
			c.int96 = c.times
		}
		return c
	}
	times := &Rebase{until: gregorianDay}
	if zone, named := file.Lookup("org.apache.spark.timeZone"); !named {
		times = &Rebase{until: zonedDay, refused: untold(oldTime, "the file counts it by Spark's old calendar and names no time zone")}
	} else if !isUTC(zone) {
		times = &Rebase{until: zonedDay, refused: untold(oldTime, fmt.Sprintf("the file counts it by Spark's old calendar and the clock of %.40q", zone))}
	}
	if before(version, 3, 0) || has(legacyDateTime) {
		c.dates, c.times = &Rebase{until: gregorianDay}, times
	}
	if before(version, 3, 1) || has(legacyInt96) {
		c.int96 = times
	}
	return c
}

// before reports whether a version is older than one of two numbers.
func before(version string, major, minor int) bool {
	first, rest, _ := strings.Cut(version, ".")
	second, _, _ := strings.Cut(rest, ".")
	x, err := strconv.Atoi(first)
	if err != nil {
		return false
	}
	y, _ := strconv.Atoi(second)
	return x < major || x == major && y < minor
}

func isUTC(zone string) bool {
	switch strings.TrimPrefix(zone, "Etc/") {
	case "UTC", "UCT", "GMT", "GMT0", "Greenwich", "Universal", "Zulu", "Z":
		return true
	}
	return false
}

// Rebase brings values of a leaf from Spark's old calendar into that of this package.
type Rebase struct {
	until   int64             // the first day since 1970 that is the same in both
	refused *UnsupportedError // why earlier days cannot be told, or nil
	perDay  int64             // how many units of the leaf make a day; none: it is INT96
}

// Rebase returns what the values of a leaf need, nil for nothing. Times without a zone were never counted in the old way.
func (c Calendar) Rebase(e *format.SchemaElement) *Rebase {
	var found *Rebase
	perDay := int64(0)
	switch t := e.LogicalType.Value.(type) {
	case *format.DateType:
		found, perDay = c.dates, 1
	case *format.TimestampType:
		if t.IsAdjustedToUTC && t.Unit.Value != nil {
			found, perDay = c.times, int64(24*time.Hour/t.Unit.Value.Duration())
		}
	case nil:
		switch {
		case e.Type.V == format.Int96:
			found = c.int96
		case !e.ConvertedType.Valid:
		case e.ConvertedType.V == deprecated.Date:
			found, perDay = c.dates, 1
		case e.ConvertedType.V == deprecated.TimestampMillis:
			found, perDay = c.times, int64(24*time.Hour/time.Millisecond)
		case e.ConvertedType.V == deprecated.TimestampMicros:
			found, perDay = c.times, int64(24*time.Hour/time.Microsecond)
		}
	}
	if found == nil {
		return nil
	}
	r := *found
	r.perDay = perDay
	return &r
}

// Amend puts the value that is meant in the place of the one that is in the file. What cannot be told stays,
// and the answer says why.
func (r *Rebase) Amend(v *parquet.Value) *UnsupportedError {
	var count int64
	switch v.Kind() {
	case parquet.Int32:
		count = int64(v.Int32())
	case parquet.Int64:
		count = v.Int64()
	case parquet.Int96:
		count = int64(int32(v.Int96()[2])) - julianEpoch
	default:
		return nil
	}
	day := floorDiv(count, max(1, r.perDay))
	if day >= r.until {
		return nil
	}
	if r.refused != nil {
		return r.refused
	}
	moved := parquet.Value{}
	switch shift := julianShift(day); v.Kind() {
	case parquet.Int32:
		moved = parquet.Int32Value(int32(count + shift))
	case parquet.Int64:
		moved = parquet.Int64Value(count + shift*r.perDay)
	case parquet.Int96:
		w := v.Int96()
		w[2] = uint32(int32(count + shift + julianEpoch))
		moved = parquet.Int96Value(w)
	}
	*v = moved.Level(v.RepetitionLevel(), v.DefinitionLevel(), max(0, v.Column()))
	return nil
}

// julianShift is how many days lie from a day since 1970 to the one that the Gregorian calendar calls what the Julian calls
// the former. What the Gregorian has no name for, as 29 February 1500, becomes the day after the one before. It grows with
// each century whose year has a leap day in one of them only. Years begin in March here, so that the leap day comes last.
func julianShift(day int64) int64 {
	const firstOfMarch0 = -719_470 // of the Julian year 0
	year := floorDiv(4*(day-firstOfMarch0)+3, 4*365+1)
	return floorDiv(year, 400) - floorDiv(year, 100) + 2
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

const oldTime = "a time before 1900"

func untold(what, why string) *UnsupportedError {
	return &UnsupportedError{
		what:   what + " cannot be told for certain: " + why,
		wayOut: "let Spark write the file anew with spark.sql.parquet.datetimeRebaseModeInWrite=CORRECTED and spark.sql.parquet.int96RebaseModeInWrite=CORRECTED",
	}
}

// refuses reports whether there may be such a value.
func (c Calendar) refuses() bool {
	return c.dates != nil && c.dates.refused != nil || c.times != nil && c.times.refused != nil || c.int96 != nil && c.int96.refused != nil
}

// refuser tells a reader's caller of values that are not taken.
type refuser struct {
	to     func(row int, column string, why *UnsupportedError)
	column string // that is read
	row    int
}

func (r *refuser) at(column string, row int) {
	if r != nil {
		r.column, r.row = column, row
	}
}

// rebased is a setter of values that may be counted in the old way.
func (r *Reader) rebased(set setter, e *element) setter {
	b := r.cal.Rebase(e.SchemaElement)
	if b == nil {
		return set
	}
	return func(v *rows.Vector, slot int, x *parquet.Value) error {
		if why := b.Amend(x); why != nil {
			if r.refuser == nil {
				return why
			}
			r.refuser.to(r.refuser.row, r.refuser.column, why)
		}
		return set(v, slot, x)
	}
}
