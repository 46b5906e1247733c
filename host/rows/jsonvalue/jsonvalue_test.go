package jsonvalue

import (
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/host/sink"
)

func value(t interface{ Fatal(...any) }, text string) Value {
	v, err := new(Doc).Parse([]byte(text))
	if err != nil {
		t.Fatal(text, err)
	}
	return v
}

func TestTree(t *testing.T) {
	v := value(t, ` {"a":[1,{"b":null},"x\u00e9\n"],"c":true,"a":{},"":-1.5e3} `)
	if v.Kind() != Object || v.Len() != 4 {
		t.Fatal(v.Kind(), v.Len())
	}
	if a := v.Get("a"); a.Kind() != Object || a.Len() != 0 {
		t.Errorf("the last of two members: %v", a.Kind())
	}
	list := v.First()
	if string(list.Name()) != "a" || list.Kind() != Array || list.Len() != 3 {
		t.Fatalf("%q %v", list.Name(), list.Kind())
	}
	last := list.First().Next().Next()
	if string(last.Text()) != "xé\n" || last.Next().Kind() != 0 || !last.Next().IsNull() {
		t.Errorf("%q", last.Text())
	}
	if b := list.First().Next().Get("b"); b.Kind() != Null || !b.IsNull() {
		t.Errorf("%v", b.Kind())
	}
	if n := v.Get(""); string(n.Text()) != "-1.5e3" || string(v.First().Next().AsText().Text()) != "c" {
		t.Errorf("%q", n.Text())
	}
	if v.Get("none").Kind() != 0 {
		t.Error("a member that is not there")
	}
}

func TestTextsThatAreNoDocuments(t *testing.T) {
	var d Doc
	for _, text := range []string{"", " ", "{", "[1,]", `{"a"}`, `{"a":1,}`, "nul", "01", "+1", "1 2", `"\x"`, "\"\xff\"", `"\ud800"`, strings.Repeat("[", MaxDepth+2), "{1:2}", "\x00"} {
		_, err := d.Parse([]byte(text))
		if m := (*sink.Misfit)(nil); !errors.As(err, &m) || m.Code != "not_json" {
			t.Errorf("%.20q: %v", text, err)
		}
	}
	deep := strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth)
	if v, err := d.Parse([]byte(deep)); err != nil || v.Kind() != Array {
		t.Errorf("as deep as may be, after what was none: %v", err)
	}
}

// TestIntegersAreExact: any integer reads back, however it is written, and no other.
func TestIntegersAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64().Draw(t, "n")
		zeros := rapid.IntRange(0, 30).Draw(t, "zeros")
		text := new(big.Int).Mul(big.NewInt(n), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(zeros)), nil)).String()
		forms := []string{
			big.NewInt(n).String(), text + "e-" + itoa(zeros), big.NewInt(n).String() + "." + strings.Repeat("0", zeros+1),
			`"` + big.NewInt(n).String() + `"`, big.NewInt(n).String() + "E0",
		}
		got, err := Int(value(t, rapid.SampledFrom(forms).Draw(t, "form")), math.MinInt64, math.MaxInt64, "long")
		if err != nil || got != n {
			t.Fatal(got, err)
		}
		if _, err := Int(value(t, big.NewInt(n).String()+".000001"), math.MinInt64, math.MaxInt64, "long"); err == nil {
			t.Fatal("a fraction is taken")
		}
		u := rapid.Uint64().Draw(t, "u")
		if got, err := Uint(value(t, new(big.Int).SetUint64(u).String()), math.MaxUint64, "uint64"); err != nil || got != u {
			t.Fatal(got, err)
		}
	})
}

func itoa(n int) string { return big.NewInt(int64(n)).String() }

// TestDecimalsAreExact: digits and scale make a text that reads back as the same digits.
func TestDecimalsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.SliceOfN(rapid.Byte(), 1, 24).Draw(t, "digits")
		scale := rapid.IntRange(0, 40).Draw(t, "scale")
		want := new(big.Int).SetBytes(digits)
		if digits[0] >= 0x80 {
			want.Sub(want, new(big.Int).Lsh(big.NewInt(1), uint(8*len(digits))))
		}
		text := string(AppendDecimal(nil, digits, scale))
		got, err := Decimal(value(t, text), scale, 100, "decimal")
		if err != nil || got.Cmp(want) != 0 {
			t.Fatalf("%s: %v, %v; want %v", text, got, err, want)
		}
		if r, ok := new(big.Rat).SetString(text); !ok || r.Cmp(new(big.Rat).SetFrac(want, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil))) != 0 {
			t.Fatalf("%s is not %v / 10^%d", text, want, scale)
		}
	})
}

func TestFloatsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := math.Float64frombits(rapid.Uint64().Draw(t, "bits"))
		got, err := Float(value(t, string(AppendFloat(nil, f, 64))), 64, "double")
		if err != nil || math.Float64bits(got) != math.Float64bits(f) && !(math.IsNaN(f) && math.IsNaN(got)) {
			t.Fatal(f, got, err)
		}
		f32 := math.Float32frombits(rapid.Uint32().Draw(t, "bits32"))
		if got, err := Float(value(t, string(AppendFloat(nil, float64(f32), 32))), 32, "float"); err != nil || float32(got) != f32 && !math.IsNaN(got) {
			t.Fatal(f32, got, err)
		}
	})
}

// TestTimesAreExact: seconds and nanoseconds make a text that Go's own reader reads alike, and that reads back.
func TestTimesAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sec := rapid.Int64Range(firstSecond, lastSecond).Draw(t, "sec")
		nanos := rapid.OneOf(rapid.Int64Range(0, 999_999_999), rapid.Just(int64(0)), rapid.Just(int64(123_000))).Draw(t, "nanos")
		zone := rapid.Bool().Draw(t, "zone")
		text, ok := AppendTime(nil, sec, nanos, zone)
		if !ok {
			t.Fatal(sec, nanos)
		}
		form := `"2006-01-02T15:04:05.999999999"`
		if zone {
			form = `"2006-01-02T15:04:05.999999999Z07:00"`
		}
		at, err := time.Parse(form, string(text))
		if err != nil || at.Unix() != sec || int64(at.Nanosecond()) != nanos {
			t.Fatal(string(text), err)
		}
		gotSec, gotNanos, err := Time(value(t, string(text)), zone, "time")
		if err != nil || gotSec != sec || gotNanos != nanos {
			t.Fatal(string(text), gotSec, gotNanos, err)
		}
		perSecond := rapid.SampledFrom([]int64{1e3, 1e6, 1e9}).Draw(t, "unit")
		n := rapid.Int64().Draw(t, "n")
		s, ns := Split(n, perSecond)
		if back, err := Units(value(t, "0"), s, ns, perSecond, "time"); s < math.MaxInt64/perSecond-1 && s > -math.MaxInt64/perSecond+1 && (err != nil || back != n) {
			t.Fatal(n, back, err)
		}
		days := rapid.Int64Range(firstSecond/86_400, lastSecond/86_400).Draw(t, "days")
		text, _ = AppendDate(nil, days)
		if got, err := Date(value(t, string(text)), "date"); err != nil || got != days {
			t.Fatal(string(text), got, err)
		}
		clock := rapid.Int64Range(0, 86_399_999_999_999).Draw(t, "clock")
		text, _ = AppendClock(nil, clock)
		if got, err := Clock(value(t, string(text)), "clock"); err != nil || got != clock {
			t.Fatal(string(text), got, err)
		}
	})
	for _, sec := range []int64{firstSecond - 1, lastSecond + 1, math.MinInt64, math.MaxInt64} {
		if text, ok := AppendTime(nil, sec, 0, true); ok {
			t.Errorf("%d has the text %s", sec, text)
		}
		if text, ok := AppendDate(nil, sec); ok {
			t.Errorf("%d has the text %s", sec, text)
		}
	}
	for _, n := range []int64{-1, 86_400_000_000_000} {
		if text, ok := AppendClock(nil, n); ok {
			t.Errorf("%d has the text %s", n, text)
		}
	}
}

func TestTextsAreJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		quoted, ok := AppendString(nil, []byte(text))
		if !ok || !jsontext.Value(quoted).IsValid() || string(value(t, string(quoted)).Text()) != text {
			t.Fatalf("%q: %s", text, quoted)
		}
		b := rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
		back, err := Bytes(nil, value(t, string(AppendBytes(nil, b))), "bytes")
		if err != nil || string(back) != string(b) {
			t.Fatal(back, err)
		}
		id := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "uuid")
		if back, err = UUID(nil, value(t, string(AppendUUID(nil, id))), "uuid"); err != nil || string(back) != string(id) {
			t.Fatal(back, err)
		}
	})
	if out, ok := AppendString([]byte("x"), []byte("\xff")); ok {
		t.Errorf("no UTF-8: %q", out)
	}
}
