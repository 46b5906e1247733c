package job

import (
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
)

type unit struct {
	name string
	size int64
}

// Units of durations in milliseconds, and of sizes in bytes, largest first.
var (
	durationUnits = [...]unit{{"d", day}, {"h", hour}, {"m", minute}, {"s", second}, {"ms", 1}}
	sizeUnits     = [...]unit{
		{"TiB", 1 << 40},
		{"GiB", gib},
		{"MiB", mib},
		{"KiB", kib},
		{"TB", 1e12},
		{"GB", 1e9},
		{"MB", 1e6},
		{"KB", 1e3},
		{"B", 1},
	}
	quantity = regexp.MustCompile(`^([0-9]{1,18}(?:\.[0-9]{1,9})?)[ ]?([A-Za-z]{1,16})`)
)

// maxQuantity keeps sums of durations and sizes inside an int64.
const maxQuantity = 1 << 60

// parseDuration reads "1s", "500ms" or "1h30m" as whole milliseconds. The suggestion is quoted, or "".
func parseDuration(s string) (ms int64, suggestion string, err error) {
	last := int64(maxQuantity)
	for rest := s; ; {
		v, unit, after, ok := quantityOf(rest)
		if !ok {
			return 0, bareUnit(s, "s"), fmt.Errorf("%q is not a duration; write a number and a unit: 500ms, 1s, 5m, 2h, 1d", cut(s))
		}
		size := sizeOf(durationUnits[:], unit)
		if size == 0 {
			return 0, misspelt(v.text, unit, durationUnits[:]), fmt.Errorf("%q has no unit of time; units are ms, s, m, h, d", cut(s))
		}
		if size >= last {
			return 0, "", fmt.Errorf("%q is not a duration; write larger units first, each once: 1h30m", cut(s))
		}
		n, exact := v.times(size)
		if !exact {
			return 0, "", fmt.Errorf("%q is not a whole number of milliseconds", cut(s))
		}
		ms = min(ms+n, maxQuantity)
		if after == "" {
			return ms, "", nil
		}
		rest, last = after, size
	}
}

// parseSize reads "64MiB" or "1GB" as bytes. The suggestion is quoted, or "".
func parseSize(s string) (n int64, suggestion string, err error) {
	v, unit, after, ok := quantityOf(s)
	if !ok || after != "" {
		return 0, bareUnit(s, "MiB"), fmt.Errorf("%q is not a size; write a number and a unit: 64MiB, 1GB, 512KiB, 100B", cut(s))
	}
	size := sizeOf(sizeUnits[:], unit)
	if size == 0 {
		return 0, misspelt(v.text, unit, sizeUnits[:]), fmt.Errorf("%q has no unit of size; units are B, KiB, MiB, GiB, TiB (powers of 1024) and KB, MB, GB, TB (powers of 1000)", cut(s))
	}
	n, exact := v.times(size)
	if !exact {
		return 0, "", fmt.Errorf("%q is not a whole number of bytes", cut(s))
	}
	return n, "", nil
}

type decimal struct {
	text  string
	value *big.Rat
}

// times returns the product when it is whole; what is too large is maxQuantity.
func (d decimal) times(size int64) (int64, bool) {
	p := new(big.Rat).Mul(d.value, new(big.Rat).SetInt64(size))
	if !p.IsInt() {
		return 0, false
	}
	if !p.Num().IsInt64() {
		return maxQuantity, true
	}
	return min(p.Num().Int64(), maxQuantity), true
}

func quantityOf(s string) (d decimal, unit, after string, ok bool) {
	m := quantity.FindStringSubmatch(s)
	if m == nil {
		return d, "", "", false
	}
	v, ok := new(big.Rat).SetString(m[1])
	if !ok {
		return d, "", "", false
	}
	return decimal{text: m[1], value: v}, m[2], s[len(m[0]):], true
}

func sizeOf(units []unit, name string) int64 {
	for _, u := range units {
		if u.name == name {
			return u.size
		}
	}
	return 0
}

var bareNumber = regexp.MustCompile(`^[0-9]{1,18}$`)

// bareUnit suggests a unit for a bare number.
func bareUnit(s, unit string) string {
	if bareNumber.MatchString(s) {
		return strconv.Quote(s + unit)
	}
	return ""
}

// misspelt suggests a unit that differs in case, or that people write out.
func misspelt(number, name string, units []unit) string {
	long := map[string]string{
		"sec": "s", "secs": "s", "second": "s", "seconds": "s", "min": "m", "mins": "m", "minute": "m", "minutes": "m",
		"hour": "h", "hours": "h", "day": "d", "days": "d", "millis": "ms", "milliseconds": "ms", "hr": "h", "hrs": "h",
		"k": "KiB", "m": "MiB", "g": "GiB", "t": "TiB", "ki": "KiB", "mi": "MiB", "gi": "GiB", "bytes": "B",
	}
	if short := long[strings.ToLower(name)]; short != "" && sizeOf(units, short) != 0 {
		return strconv.Quote(number + short)
	}
	for _, u := range units {
		if strings.EqualFold(u.name, name) {
			return strconv.Quote(number + u.name)
		}
	}
	return ""
}

// formatDuration writes milliseconds as a job file does.
func formatDuration(ms int64) string {
	for _, u := range durationUnits {
		if ms != 0 && ms%u.size == 0 {
			return strconv.FormatInt(ms/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(ms, 10) + "s"
}

// formatSize writes bytes as a job file does.
func formatSize(n int64) string {
	for _, u := range sizeUnits[:4] {
		if n != 0 && n%u.size == 0 {
			return strconv.FormatInt(n/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

func milliseconds(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
