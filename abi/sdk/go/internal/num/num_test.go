package num

import (
	"math/big"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/wasmill/wasmill/abi/sdk/go/internal/mem"
)

// place lays a text where wide loads find something else behind it.
func place(t testing.TB, text string) (at, n uint64) {
	t.Helper()
	mem.Reset()
	var a mem.Arena
	if !a.Hold(uint64(len(text)) + 64) {
		t.Fatal("no memory")
	}
	copy(mem.Bytes(a.Base, a.Len), text+"7.5e9-")
	return a.Base, uint64(len(text))
}

func TestInt(t *testing.T) {
	tests := []struct {
		text string
		want int64
		ok   bool
	}{
		{"0", 0, true},
		{"-0", 0, true},
		{"7", 7, true},
		{"-7", -7, true},
		{"1234567", 1234567, true},
		{"12345678", 12345678, true},
		{"-1234567", -1234567, true},
		{"-12345678", -12345678, true},
		{"123456789", 123456789, true},
		{"007", 7, true},
		{"9223372036854775807", 1<<63 - 1, true},
		{"9223372036854775808", 0, false},
		{"-9223372036854775808", -1 << 63, true},
		{"-9223372036854775809", 0, false},
		{"18446744073709551616", 0, false},
		{"99999999999999999999999", 0, false},
		{"", 0, false},
		{"-", 0, false},
		{"--1", 0, false},
		{"+1", 0, false},
		{"1.0", 0, false},
		{"1e3", 0, false},
		{" 1", 0, false},
		{"1 ", 0, false},
		{"/", 0, false},
		{":", 0, false},
		{"1:", 0, false},
		{"\x80", 0, false},
		{"1-", 0, false},
	}
	for _, tt := range tests {
		at, n := place(t, tt.text)
		got, ok := Int(at, n)
		if ok != tt.ok || ok && got != tt.want {
			t.Errorf("Int(%q) = %d, %v, want %d, %v", tt.text, got, ok, tt.want, tt.ok)
		}
	}
}

func TestScaled(t *testing.T) {
	tests := []struct {
		text  string
		scale uint64
		want  int64
		ok    bool
	}{
		{"0", 2, 0, true},
		{"12.34", 2, 1234, true},
		{"12.3", 2, 1230, true},
		{"12", 2, 1200, true},
		{"-12.34", 2, -1234, true},
		{"1.005", 2, 101, true},
		{"1.004999", 2, 100, true},
		{"-1.005", 2, -101, true},
		{"0.5", 0, 1, true},
		{"-0.5", 0, -1, true},
		{"0.49999999999999999999", 0, 0, true},
		{"1e2", 2, 10000, true},
		{"1E+2", 0, 100, true},
		{"125e-3", 2, 13, true},
		{"1e-400", 2, 0, true},
		{"0e999999999999", 2, 0, true},
		{"1e999999999999", 0, 0, false},
		{"0.000000000000000000000000001", 2, 0, true},
		{"92233720368547758.07", 2, 1<<63 - 1, true},
		{"92233720368547758.08", 2, 0, false},
		{"-92233720368547758.08", 2, -1 << 63, true},
		{"18446744073709551615.5", 0, 0, false},
		{"5", 18, 5000000000000000000, true},
		{"10", 18, 0, false},
		{"", 2, 0, false},
		{"-", 2, 0, false},
		{".5", 2, 0, false},
		{"5.", 2, 0, false},
		{"1.2.3", 2, 0, false},
		{"1e", 2, 0, false},
		{"1e+", 2, 0, false},
		{"1x", 2, 0, false},
		{"--1", 2, 0, false},
		{".", 2, 0, false},
	}
	for _, tt := range tests {
		at, n := place(t, tt.text)
		got, ok := Scaled(at, n, tt.scale)
		if ok != tt.ok || ok && got != tt.want {
			t.Errorf("Scaled(%q, %d) = %d, %v, want %d, %v", tt.text, tt.scale, got, ok, tt.want, tt.ok)
		}
	}
}

// TestScaledAgainstRationals compares with exact rational arithmetic.
func TestScaledAgainstRationals(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		text := strconv.FormatInt(rnd.Int64N(1<<rnd.IntN(50)+1), 10)
		if rnd.IntN(3) > 0 {
			text += "." + strconv.FormatInt(1+rnd.Int64N(1<<rnd.IntN(40)+1), 10)
		}
		if rnd.IntN(4) == 0 {
			text += "e" + strconv.Itoa(rnd.IntN(20)-10)
		}
		if rnd.IntN(2) == 0 {
			text = "-" + text
		}
		scale := rnd.IntN(12)
		want, fits := exact(text, scale)
		at, n := place(t, text)
		if got, ok := Scaled(at, n, uint64(scale)); ok != fits || ok && got != want {
			t.Fatalf("Scaled(%q, %d) = %d, %v, want %d, %v", text, scale, got, ok, want, fits)
		}
	}
}

// exact is text times 10^scale, rounded half away from zero.
func exact(text string, scale int) (int64, bool) {
	r, _ := new(big.Rat).SetString(text)
	r.Mul(r, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)))
	half := big.NewRat(1, 2)
	if r.Sign() < 0 {
		half.Neg(half)
	}
	r.Add(r, half)
	q := new(big.Int).Quo(r.Num(), r.Denom())
	return q.Int64(), q.IsInt64()
}

func TestPut(t *testing.T) {
	numbers := []int64{0, 1, 9, 10, 99, 100, 999, 1000, 8191, 8192, 9999, 10000, 12345, 99999999, 100000000, 1<<63 - 1, -1 << 63}
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 5000 {
		numbers = append(numbers, rnd.Int64()>>rnd.IntN(64))
	}
	for _, v := range numbers {
		for _, v := range []int64{v, -v} {
			at, _ := place(t, "")
			end := PutInt(at, v)
			if got, want := mem.String(at, end-at), strconv.FormatInt(v, 10); got != want {
				t.Fatalf("PutInt(%d) = %q", v, got)
			}
			scale := uint64(rnd.IntN(19))
			at, _ = place(t, "")
			end = PutDecimal(at, v, scale)
			checkDecimal(t, mem.String(at, end-at), v, scale)
			if v >= 0 && v < 10000 {
				scale = 1 + scale%3
				at, _ = place(t, "")
				end = PutSmallDecimal(at, uint64(v), scale)
				checkDecimal(t, mem.String(at, end-at), v, scale)
			}
		}
	}
}

func checkDecimal(t *testing.T, got string, v int64, scale uint64) {
	t.Helper()
	want := new(big.Rat).SetFrac(big.NewInt(v), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)).FloatString(int(scale))
	if got != want {
		t.Fatalf("%d with scale %d = %q, want %q", v, scale, got, want)
	}
}

func FuzzNumbers(f *testing.F) {
	for _, s := range []string{"0", "-12.34", "1e5", "99999999999999999999", "1.", "-", "\xff"} {
		f.Add(s, uint8(2))
	}
	f.Fuzz(func(t *testing.T, s string, scale uint8) {
		if len(s) > 1000 {
			return
		}
		at, n := place(t, s)
		if v, ok := Int(at, n); ok {
			if back, err := strconv.ParseInt(s, 10, 64); err != nil || back != v {
				t.Fatalf("Int(%q) = %d, strconv says %d, %v", s, v, back, err)
			}
		}
		if v, ok := Scaled(at, n, uint64(scale%19)); ok && len(s) < 100 {
			r, fine := new(big.Rat).SetString(s)
			if !fine {
				t.Fatalf("Scaled(%q) = %d, but that is no number", s, v)
			}
			if want, fits := exact(r.RatString(), int(scale%19)); !fits || want != v {
				t.Fatalf("Scaled(%q, %d) = %d, want %d", s, scale%19, v, want)
			}
		}
	})
}
