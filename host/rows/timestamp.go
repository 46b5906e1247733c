package rows

import "encoding/binary"

// Dates are counted by the civil calendar, extended backwards, in days since 1970.

const (
	microsPerSecond = 1_000_000
	secondsPerDay   = 86_400
)

// The seconds in which the years 0001 and 9999 of UTC begin and end.
const (
	firstSecond = -62_135_596_800
	lastSecond  = 253_402_300_799
)

// text returns the text of the string at i.
func text(b []byte, i int) (s []byte, end int, fail failure) {
	if b[i] != '"' {
		return nil, i, wrongType(b, i)
	}
	return stringText(b, i)
}

// parseDate reads a string YYYY-MM-DD as days since 1970.
func parseDate(b []byte, i int) (int32, int, failure) {
	s, end, fail := text(b, i)
	if fail.code != fits {
		return 0, i, fail
	}
	days, ok := civil(s)
	if !ok || len(s) != 10 {
		return 0, i, failure{badText, i}
	}
	return int32(days), end, failure{}
}

// lastDay remembers the date of the last timestamp of a column: neighbours tend to share it.
type lastDay struct {
	head uint64 // the first eight bytes of "YYYY-MM-DD"
	tail uint16 // the last two
	days int64
	set  bool
}

// timestamp reads an RFC 3339 string, or an integer where the type has a unit, as microseconds since 1970.
func (v *Vector) timestamp(b []byte, i int) (int64, int, failure) {
	if micros, end := v.utc(b, i); end > 0 {
		return micros, end, failure{}
	}
	if v.Type.Unit != NoUnit && (b[i] != '"' || holdsNumber(b, i)) {
		return unitTime(b, i, v.Type.Unit)
	}
	s, end, fail := text(b, i)
	if fail.code != fits {
		return 0, i, fail
	}
	micros, code := rfc3339(s)
	if code != fits {
		return 0, i, failure{code, i}
	}
	return micros, end, failure{}
}

var unitMicros = [...]int64{Seconds: microsPerSecond, Millis: 1000, Micros: 1}

// unitTime reads an integer that counts units since 1970.
func unitTime(b []byte, i int, u Unit) (int64, int, failure) {
	each := unitMicros[u]
	perSecond := microsPerSecond / each
	x, end, fail := parseInt(b, i, firstSecond*perSecond, (lastSecond+1)*perSecond-1)
	return x * each, end, fail
}

// holdsNumber reports whether the string at i is a JSON number as csv has it.
func holdsNumber(b []byte, i int) bool {
	_, _, fail := quotedNumber(b, i)
	return fail.code == fits
}

// local reads a string of a date and a time without a zone as microseconds since 1970 by that clock.
func (v *Vector) local(b []byte, i int) (int64, int, failure) {
	if micros, end := v.clock(b, i); end > 0 && end < len(b) && b[end] == '"' {
		return micros, end + 1, failure{}
	}
	s, end, fail := text(b, i)
	if fail.code != fits {
		return 0, i, fail
	}
	micros, code := localTime(s)
	if code != fits {
		return 0, i, failure{code, i}
	}
	return micros, end, failure{}
}

// utc reads the ordinary form "YYYY-MM-DDThh:mm:ss[.f]Z" with at most six digits, quotes included. It returns 0 for all
// else.
func (v *Vector) utc(b []byte, i int) (micros int64, end int) {
	micros, end = v.clock(b, i)
	if end == 0 || len(b)-end < 2 || b[end] != 'Z' || b[end+1] != '"' {
		return 0, 0
	}
	return micros, end + 2
}

// clock reads a quote and YYYY-MM-DDThh:mm:ss[.f] with at most six digits. It returns 0 for all else.
func (v *Vector) clock(b []byte, i int) (micros int64, end int) {
	if len(b)-i < 22 {
		return 0, 0
	}
	s := b[i+1 : i+22 : len(b)]
	head, tail := binary.LittleEndian.Uint64(s), binary.LittleEndian.Uint16(s[8:])
	if !v.day.set || head != v.day.head || tail != v.day.tail {
		days, ok := civil(s)
		if !ok {
			return 0, 0
		}
		v.day = lastDay{head, tail, days, true}
	}
	h, m, sec := two(s, 11), two(s, 14), two(s, 17)
	if b[i] != '"' || s[10] != 'T' || s[13] != ':' || s[16] != ':' || h > 23 || m > 59 || sec > 59 {
		return 0, 0
	}
	end = i + 20
	if b[end] == '.' {
		p := end + 1
		for p < len(b) && p <= end+6 && b[p]-'0' <= 9 {
			micros = micros*10 + int64(b[p]-'0')
			p++
		}
		if p == end+1 {
			return 0, 0
		}
		micros *= pow10[6-(p-end-1)]
		end = p
	}
	return (v.day.days*secondsPerDay+int64(h*3600+m*60+sec))*microsPerSecond + micros, end
}

// rfc3339 reads "2006-01-02T15:04:05[.fraction](Z|+hh:mm|-hh:mm)". A leap second is refused: no column can hold it.
func rfc3339(s []byte) (int64, failCode) {
	days, ok := civil(s)
	if !ok || len(s) < 20 || s[10]|0x20 != 't' || s[13] != ':' || s[16] != ':' {
		return 0, badText
	}
	ofDay, i, code := timeOfDay(s)
	if code != fits {
		return 0, code
	}
	offset, ok := zone(s, i)
	if !ok {
		return 0, badText
	}
	micros := (days*secondsPerDay-offset)*microsPerSecond + ofDay
	if micros < firstMicro || micros > lastMicro {
		return 0, outOfRange
	}
	return micros, fits
}

// localTime reads "2006-01-02T15:04:05[.fraction]", also with a blank for the T.
func localTime(s []byte) (int64, failCode) {
	days, ok := civil(s)
	if !ok || len(s) < 19 || s[10]|0x20 != 't' && s[10] != ' ' || s[13] != ':' || s[16] != ':' {
		return 0, badText
	}
	ofDay, i, code := timeOfDay(s)
	switch {
	case code != fits:
		return 0, code
	case i == len(s):
		return days*secondsPerDay*microsPerSecond + ofDay, fits
	case s[i] == '+', s[i] == '-', s[i]|0x20 == 'z':
		return 0, zoned
	}
	return 0, badText
}

// timeOfDay reads hh:mm:ss[.fraction] behind a date of ten characters, and returns what follows it.
func timeOfDay(s []byte) (micros int64, end int, code failCode) {
	h, m, sec := two(s, 11), two(s, 14), two(s, 17)
	if h > 23 || m > 59 || sec > 59 {
		return 0, 0, badText
	}
	end = 19
	if end < len(s) && s[end] == '.' {
		if micros, end, code = fraction(s, end+1); code != fits {
			return 0, 0, code
		}
	}
	return int64(h*3600+m*60+sec)*microsPerSecond + micros, end, fits
}

// fraction reads digits of a second, of which those after the sixth must be zeros.
func fraction(s []byte, i int) (micros int64, end int, code failCode) {
	unit := int64(100_000)
	start := i
	for i < len(s) && s[i]-'0' <= 9 {
		d := int64(s[i] - '0')
		if unit == 0 && d != 0 {
			return 0, i, tooPrecise
		}
		micros += d * unit
		unit /= 10
		i++
	}
	if i == start {
		return 0, i, badText
	}
	return micros, i, fits
}

// zone reads the rest of a timestamp as seconds east of UTC.
func zone(s []byte, i int) (int64, bool) {
	if len(s) == i+1 {
		return 0, s[i]|0x20 == 'z'
	}
	if len(s) != i+6 || s[i] != '+' && s[i] != '-' || s[i+3] != ':' {
		return 0, false
	}
	h, m := two(s, i+1), two(s, i+4)
	if h > 23 || m > 59 {
		return 0, false
	}
	east := int64(h*3600 + m*60)
	if s[i] == '-' {
		east = -east
	}
	return east, true
}

// two reads two digits at i; what is not two digits gives a number above 99.
func two(s []byte, i int) int {
	a, b := s[i]-'0', s[i+1]-'0'
	if a > 9 || b > 9 {
		return 100
	}
	return int(a)*10 + int(b)
}

var monthDays = [13]int{0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

// civil reads YYYY-MM-DD at the start of s as days since 1970. The years are 0001 to 9999.
func civil(s []byte) (int64, bool) {
	if len(s) < 10 || s[4] != '-' || s[7] != '-' {
		return 0, false
	}
	high, low, m, d := two(s, 0), two(s, 2), two(s, 5), two(s, 8)
	if high > 99 || low > 99 || m < 1 || m > 12 || d < 1 {
		return 0, false
	}
	y := high*100 + low
	last := monthDays[m]
	if m == 2 && y%4 == 0 && (y%100 != 0 || y%400 == 0) {
		last = 29
	}
	if y < 1 || d > last {
		return 0, false
	}
	return daysOf(y, m, d), true
}

// daysOf counts from 1 March of year 0, so that the leap day is a year's last.
func daysOf(y, m, d int) int64 {
	if m <= 2 {
		y--
		m += 12
	}
	return int64(365*y+y/4-y/100+y/400+(153*(m-3)+2)/5+d-1) - 719468
}

// dateOf is the inverse of daysOf.
func dateOf(days int64) (y, m, d int) {
	z := days + 719468
	era := floorDiv(z, 146097)
	doe := int(z - era*146097)
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	d = doy - (153*mp+2)/5 + 1
	m = mp + 3
	y = yoe + int(era)*400
	if m > 12 {
		m -= 12
		y++
	}
	return y, m, d
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
