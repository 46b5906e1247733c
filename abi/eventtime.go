package abi

import "math"

// TimeUnit is what an integer event time counts since 1970-01-01T00:00:00Z.
type TimeUnit string

// The units of integer event times. NoUnit takes no integers at all.
const (
	NoUnit       TimeUnit = ""
	Seconds      TimeUnit = "s"
	Milliseconds TimeUnit = "ms"
	Microseconds TimeUnit = "us"
	Nanoseconds  TimeUnit = "ns"
)

// EventTimeOf reads an event time from a field's text: a string as RFC 3339 (section 5.6; T and Z in either case, any
// number of digits of fraction, no leap second), an integer written without fraction and exponent by unit, also as a
// string, which is all that CSV has. The result is in microseconds, rounded down to whole milliseconds. Anything else, or a
// time outside the years 1 to 9999, is not ok.
func EventTimeOf(text []byte, kind FieldKind, unit TimeUnit) (us int64, ok bool) {
	switch kind {
	case FieldString:
		us, ok = textTime(text, unit)
	case FieldEscaped:
		if len(text) > 512 {
			return 0, false
		}
		plain, err := UnescapeString(text, make([]byte, 0, 64))
		if err != nil {
			return 0, false
		}
		us, ok = textTime(plain, unit)
	case FieldNumber:
		us, ok = integerTime(text, unit)
	}
	if !ok || us < MinTime || us > MaxTime {
		return 0, false
	}
	return us, true
}

func textTime(text []byte, unit TimeUnit) (us int64, ok bool) {
	if us, ok = integerTime(text, unit); ok {
		return us, true
	}
	return parseRFC3339(text)
}

func integerTime(text []byte, unit TimeUnit) (us int64, ok bool) {
	n, ok := parseInt(text)
	if !ok {
		return 0, false
	}
	switch unit {
	case Seconds:
		if n < MinTime/1_000_000 || n > MaxTime/1_000_000 {
			return 0, false
		}
		return n * 1_000_000, true
	case Milliseconds:
		if n < MinTime/1000 || n > MaxTime/1000 {
			return 0, false
		}
		return n * 1000, true
	case Microseconds:
		return floorMillis(n), true
	case Nanoseconds:
		q := n / 1000
		if n%1000 < 0 {
			q--
		}
		return floorMillis(q), true
	}
	return 0, false
}

// parseInt reads a JSON number that is written as an integer and fits an int64.
func parseInt(text []byte) (n int64, ok bool) {
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		text = text[1:]
	}
	if len(text) == 0 || len(text) > 19 {
		return 0, false
	}
	var u uint64 // 19 digits fit
	for _, c := range text {
		if c-'0' > 9 {
			return 0, false
		}
		u = u*10 + uint64(c-'0')
	}
	if u > math.MaxInt64 {
		return 0, false
	}
	if negative {
		return -int64(u), true
	}
	return int64(u), true
}

// digits reads b as a number of len(b) decimal digits, or gives -1.
func digits(b []byte) int {
	n := 0
	for _, c := range b {
		if c-'0' > 9 {
			return -1
		}
		n = n*10 + int(c-'0')
	}
	return n
}

// parseRFC3339 reads a date-time of RFC 3339 section 5.6 to microseconds, rounded down to whole milliseconds.
func parseRFC3339(b []byte) (us int64, ok bool) {
	if len(b) < 20 || b[4] != '-' || b[7] != '-' || b[10]|0x20 != 't' || b[13] != ':' || b[16] != ':' {
		return 0, false
	}
	year, month, day := digits(b[0:4]), digits(b[5:7]), digits(b[8:10])
	hour, minute, second := digits(b[11:13]), digits(b[14:16]), digits(b[17:19])
	if year < 0 || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) {
		return 0, false
	}
	if hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59 {
		return 0, false
	}
	millis, rest, ok := fraction(b[19:])
	if !ok {
		return 0, false
	}
	offset, ok := zoneOffset(rest)
	if !ok {
		return 0, false
	}
	seconds := int64(daysSince1970(year, month, day))*86400 + int64(hour*3600+minute*60+second-offset)
	return seconds*1_000_000 + int64(millis)*1000, true
}

// fraction reads an optional fraction of a second and returns its whole milliseconds and what follows.
func fraction(b []byte) (millis int, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != '.' {
		return 0, b, true
	}
	end := skipDigits(b, 1)
	for i, scale := 1, 100; i < end && scale > 0; i, scale = i+1, scale/10 {
		millis += int(b[i]-'0') * scale
	}
	return millis, b[end:], end > 1
}

// zoneOffset reads Z or a numeric offset, in seconds east of UTC.
func zoneOffset(b []byte) (seconds int, ok bool) {
	if len(b) == 1 {
		return 0, b[0]|0x20 == 'z'
	}
	if len(b) != 6 || b[0] != '+' && b[0] != '-' || b[3] != ':' {
		return 0, false
	}
	hour, minute := digits(b[1:3]), digits(b[4:6])
	if hour < 0 || hour > 23 || minute < 0 || minute > 59 {
		return 0, false
	}
	seconds = hour*3600 + minute*60
	if b[0] == '-' {
		seconds = -seconds
	}
	return seconds, true
}

func daysIn(year, month int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// daysSince1970 counts days of the Gregorian calendar. Years begin in March here, so that the leap day comes last.
func daysSince1970(year, month, day int) int {
	year += 4000 // keeps what is divided positive, and is a multiple of 400
	if month <= 2 {
		year--
		month += 12
	}
	const to1970 = 719468 + 10*146097 // days from March of year 0, moved by 4000 years, to 1970-01-01
	return year*365 + year/4 - year/100 + year/400 + (153*(month-3)+2)/5 + day - 1 - to1970
}
