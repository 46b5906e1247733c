package jsonvalue

import (
	"encoding/base64"
	"encoding/hex"
	"math"
	"math/big"
	"strconv"
	"time"

	"github.com/wasmill/wasmill/host/sink"
)

// misfit says that a value does not fit a type.
func misfit(code, reason string, v Value, of string) error {
	return &sink.Misfit{Code: code, Reason: reason + ": " + v.excerpt() + " for " + of}
}

// Wrong is the misfit of a value of another kind than a type has.
func Wrong(v Value, of string) error { return misfit("type", "not a value for this type", v, of) }

// OutOfRange is the misfit of a value that is too large or too small for a type.
func OutOfRange(v Value, of string) error { return misfit("range", "outside the type's range", v, of) }

func (v Value) excerpt() string {
	switch v.Kind() {
	case 0:
		return "nothing"
	case Array:
		return "an array"
	case Object:
		return "an object"
	case String:
		return strconv.Quote(cut(v.Text()))
	}
	return cut(v.Text())
}

func cut(text []byte) string {
	if len(text) > 40 {
		return string(text[:40]) + "..."
	}
	return string(text)
}

// numberText returns the text of a number, or of one that stands in a string alone.
func numberText(v Value, of string) ([]byte, error) {
	if k := v.Kind(); k == Number || k == String && isNumber(v.Text()) {
		return v.Text(), nil
	}
	return nil, Wrong(v, of)
}

// isNumber reports whether text is one JSON number.
func isNumber(s []byte) bool {
	digits := func() bool {
		n := 0
		for n < len(s) && s[n]-'0' <= 9 {
			n++
		}
		s = s[n:]
		return n > 0
	}
	if len(s) > 0 && s[0] == '-' {
		s = s[1:]
	}
	if len(s) > 1 && s[0] == '0' && s[1]-'0' <= 9 || !digits() {
		return false
	}
	if len(s) > 0 && s[0] == '.' {
		if s = s[1:]; !digits() {
			return false
		}
	}
	if len(s) > 0 && s[0]|0x20 == 'e' {
		if s = s[1:]; len(s) > 0 && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		if !digits() {
			return false
		}
	}
	return len(s) == 0
}

// Int reads an integer between lo and hi; of names the type for messages.
func Int(v Value, lo, hi int64, of string) (int64, error) {
	text, err := numberText(v, of)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		x, err := scaled(v, text, 0, 19, of)
		if err != nil {
			return 0, err
		}
		if !x.IsInt64() {
			return 0, OutOfRange(v, of)
		}
		n = x.Int64()
	}
	if n < lo || n > hi {
		return 0, OutOfRange(v, of)
	}
	return n, nil
}

// Uint reads an integer between 0 and hi.
func Uint(v Value, hi uint64, of string) (uint64, error) {
	text, err := numberText(v, of)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil {
		x, err := scaled(v, text, 0, 20, of)
		if err != nil {
			return 0, err
		}
		if !x.IsUint64() {
			return 0, OutOfRange(v, of)
		}
		n = x.Uint64()
	}
	if n > hi {
		return 0, OutOfRange(v, of)
	}
	return n, nil
}

// Decimal reads a number times ten to the power of scale: an integer of at most that many digits.
func Decimal(v Value, scale, precision int, of string) (*big.Int, error) {
	text, err := numberText(v, of)
	if err != nil {
		return nil, err
	}
	return scaled(v, text, scale, precision, of)
}

// maxExponent caps exponents far outside of every type.
const maxExponent = 1 << 40

func scaled(v Value, text []byte, scale, precision int, of string) (*big.Int, error) {
	var digits []byte
	neg := text[0] == '-'
	if neg {
		text = text[1:]
	}
	exp, point := int64(scale), false
	for i, c := range text {
		if c|0x20 == 'e' {
			exp += exponent(text[i+1:])
			break
		}
		if c == '.' {
			point = true
			continue
		}
		if point {
			exp--
		}
		if c != '0' || len(digits) > 0 {
			digits = append(digits, c)
		}
	}
	for len(digits) > 0 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
		exp++
	}
	switch {
	case len(digits) == 0:
		return new(big.Int), nil
	case exp < 0:
		return nil, misfit("precision", "more digits than the type holds", v, of)
	case int64(len(digits))+exp > int64(precision):
		return nil, OutOfRange(v, of)
	}
	for ; exp > 0; exp-- {
		digits = append(digits, '0')
	}
	x, ok := new(big.Int).SetString(string(digits), 10)
	if !ok {
		return nil, Wrong(v, of)
	}
	if neg {
		x.Neg(x)
	}
	return x, nil
}

func exponent(text []byte) int64 {
	neg := text[0] == '-'
	if neg || text[0] == '+' {
		text = text[1:]
	}
	var e int64
	for _, c := range text {
		e = min(e*10+int64(c-'0'), maxExponent)
	}
	if neg {
		return -e
	}
	return e
}

// quietNaN is the NaN that others write too: math.NaN has another bit set.
const quietNaN = 0x7ff8 << 48

// Float reads a number, NaN, Infinity or -Infinity; bits is 32 or 64.
func Float(v Value, bits int, of string) (float64, error) {
	if v.Kind() == String {
		switch string(v.Text()) {
		case "NaN":
			return math.Float64frombits(quietNaN), nil
		case "Infinity":
			return math.Inf(1), nil
		case "-Infinity":
			return math.Inf(-1), nil
		}
	}
	text, err := numberText(v, of)
	if err != nil {
		return 0, err
	}
	f, err := strconv.ParseFloat(string(text), bits)
	if err != nil {
		return 0, OutOfRange(v, of)
	}
	return f, nil
}

// Boolean reads true or false, also in a string.
func Boolean(v Value, of string) (bool, error) {
	if k := v.Kind(); k == Bool || k == String {
		switch string(v.Text()) {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
	}
	return false, Wrong(v, of)
}

// Text reads a string, or a number, true or false as it is written.
func Text(v Value, of string) ([]byte, error) {
	switch v.Kind() {
	case String, Number, Bool:
		return v.Text(), nil
	}
	return nil, Wrong(v, of)
}

// Bytes appends what a string of padded standard base64 holds.
func Bytes(dst []byte, v Value, of string) ([]byte, error) {
	if v.Kind() != String {
		return dst, Wrong(v, of)
	}
	text := v.Text()
	for _, c := range text {
		if c == '\n' || c == '\r' {
			return dst, misfit("type", "the text is not base64 with its padding", v, of)
		}
	}
	out, err := base64.StdEncoding.Strict().AppendDecode(dst, text)
	if err != nil {
		return dst, misfit("type", "the text is not base64 with its padding", v, of)
	}
	return out, nil
}

// Time reads a time stamp as seconds since 1970 and nanoseconds after them. zone demands one; without, there must be none.
func Time(v Value, zone bool, of string) (sec, nanos int64, err error) {
	if v.Kind() != String {
		return 0, 0, Wrong(v, of)
	}
	s := string(v.Text())
	if len(s) < 19 || s[10]|0x20 != 't' {
		return 0, 0, badTime(v, zone, of)
	}
	day, derr := time.Parse("2006-01-02", s[:10])
	clock, cerr := time.Parse("15:04:05", s[11:19])
	if derr != nil || cerr != nil {
		return 0, 0, badTime(v, zone, of)
	}
	nanos, rest, ok := fraction(s[19:])
	if !ok {
		return 0, 0, misfit("precision", "more digits than the type holds", v, of)
	}
	east, ok := offset(rest, zone)
	if !ok {
		return 0, 0, badTime(v, zone, of)
	}
	if sec = day.Unix() + secondsOf(clock) - east; sec < firstSecond || sec > lastSecond {
		return 0, 0, OutOfRange(v, of)
	}
	return sec, nanos, nil
}

func badTime(v Value, zone bool, of string) error {
	if zone {
		return misfit("type", "the text is not an RFC 3339 time with its offset, as in 2013-01-31T10:00:00Z", v, of)
	}
	return misfit("type", "the text is not a time without an offset, as in 2013-01-31T10:00:00", v, of)
}

func secondsOf(t time.Time) int64 { return int64(t.Hour()*3600 + t.Minute()*60 + t.Second()) }

// fraction reads the digits of a second, of which those after the ninth must be zeros.
func fraction(s string) (nanos int64, rest string, ok bool) {
	if len(s) < 2 || s[0] != '.' || s[1]-'0' > 9 {
		return 0, s, true
	}
	unit := int64(100_000_000)
	i := 1
	for ; i < len(s) && s[i]-'0' <= 9; i++ {
		if unit == 0 && s[i] != '0' {
			return 0, s, false
		}
		nanos += int64(s[i]-'0') * unit
		unit /= 10
	}
	return nanos, s[i:], true
}

// offset reads the rest of a time stamp as seconds east of UTC.
func offset(s string, zone bool) (int64, bool) {
	if !zone {
		return 0, s == ""
	}
	if s == "Z" || s == "z" {
		return 0, true
	}
	if len(s) != 6 || s[0] != '+' && s[0] != '-' {
		return 0, false
	}
	t, err := time.Parse("15:04", s[1:])
	if err != nil {
		return 0, false
	}
	east := int64(t.Hour()*3600 + t.Minute()*60)
	if s[0] == '-' {
		return -east, true
	}
	return east, true
}

// Date reads a date as days since 1970.
func Date(v Value, of string) (int64, error) {
	if v.Kind() != String {
		return 0, Wrong(v, of)
	}
	t, err := time.Parse("2006-01-02", string(v.Text()))
	if err != nil {
		return 0, misfit("type", "the text is not a date, as in 2013-01-31", v, of)
	}
	if t.Unix() < firstSecond {
		return 0, OutOfRange(v, of)
	}
	return t.Unix() / 86_400, nil
}

// Clock reads a time of day in nanoseconds.
func Clock(v Value, of string) (int64, error) {
	if v.Kind() != String {
		return 0, Wrong(v, of)
	}
	s := string(v.Text())
	if len(s) < 8 {
		return 0, badClock(v, of)
	}
	t, err := time.Parse("15:04:05", s[:8])
	if err != nil {
		return 0, badClock(v, of)
	}
	nanos, rest, ok := fraction(s[8:])
	if !ok {
		return 0, misfit("precision", "more digits than the type holds", v, of)
	}
	if rest != "" {
		return 0, badClock(v, of)
	}
	return secondsOf(t)*1_000_000_000 + nanos, nil
}

func badClock(v Value, of string) error {
	return misfit("type", "the text is not a time of day, as in 10:00:00", v, of)
}

// Units turns seconds and nanoseconds into units of which there are perSecond. A finer time is a misfit.
func Units(v Value, sec, nanos, perSecond int64, of string) (int64, error) {
	unit := 1_000_000_000 / perSecond
	if nanos%unit != 0 {
		return 0, misfit("precision", "more digits than the type holds", v, of)
	}
	if most := math.MaxInt64/perSecond - 1; sec > most || sec < -most {
		return 0, OutOfRange(v, of)
	}
	return sec*perSecond + nanos/unit, nil
}

// UUID appends the 16 bytes of a UUID in five groups.
func UUID(dst []byte, v Value, of string) ([]byte, error) {
	if v.Kind() != String {
		return dst, Wrong(v, of)
	}
	s := v.Text()
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return dst, misfit("type", "the text is not a UUID", v, of)
	}
	var digits [32]byte
	plain := append(append(append(append(append(digits[:0], s[:8]...), s[9:13]...), s[14:18]...), s[19:23]...), s[24:]...)
	out, err := hex.AppendDecode(dst, plain)
	if err != nil {
		return dst, misfit("type", "the text is not a UUID", v, of)
	}
	return out, nil
}
