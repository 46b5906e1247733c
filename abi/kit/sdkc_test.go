package kit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/abi"
)

// The guests of the C SDK: with 16 bytes a step, with 8, and with an arena so small that every path of its refilling is met.
var cProbes = []string{"probe.wasm", "probe-swar.wasm", "probe-tiny.wasm"}

// cGuest starts a guest of the C SDK on the reference host.
func cGuest(t testing.TB, file, config string) (Program, error) {
	t.Helper()
	wasm, err := os.ReadFile(filepath.Join("..", "sdk", "c", file))
	if err != nil {
		t.Fatal(err)
	}
	p, err := reference{}.Start(&Case{Wasm: wasm, Config: json.RawMessage(config)}, func(Log) {})
	if err == nil {
		t.Cleanup(func() { _ = p.Close() })
	}
	return p, err
}

// cLane is an instance of such a guest that takes one frame after another.
type cLane struct{ *refLane }

func cOpen(p Program) (cLane, error) {
	in, err := p.Lane(LaneOptions{})
	if err != nil {
		return cLane{}, err
	}
	return cLane{in.(*refLane)}, nil
}

// frame runs one frame and answers what was emitted.
func (c cLane) frame(recs []abi.Record, flags uint16) ([]abi.Record, error) {
	l := &lane{inputs: map[uint32]*abi.Record{}, judged: map[uint32]bool{}}
	for i := range recs {
		l.inputs[recs[i].Index] = &recs[i]
	}
	nfields := 0
	if len(recs) > 0 {
		nfields = len(recs[0].Fields)
	}
	c.rules.Used = 0
	err := c.Call(abi.FrameHeader{Lane: 5, Flags: flags}, recs, nfields, l.emit)
	return l.out, err
}

// cCall runs one frame on a fresh instance.
func cCall(p Program, recs []abi.Record, flags uint16) ([]abi.Record, error) {
	c, err := cOpen(p)
	if err != nil {
		return nil, err
	}
	out, err := c.frame(recs, flags)
	return out, errors.Join(err, c.Close())
}

func call(op string, value []byte, arg string) abi.Record {
	return abi.Record{Key: []byte(op), Value: value, Headers: []abi.Header{
		{Name: []byte("arg"), Value: []byte("an earlier one")}, {Name: []byte("arg"), Value: []byte(arg)},
	}}
}

// probes starts every build of the probe.
func probes(t *testing.T) map[string]cLane {
	all := map[string]cLane{}
	for _, file := range cProbes {
		p, err := cGuest(t, "test/"+file, "{}")
		if err != nil {
			t.Fatal(err)
		}
		if all[file], err = cOpen(p); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// ask calls a function of every build and wants the same answer of all.
func ask(t fataler, all map[string]cLane, op string, value []byte, arg string) string {
	t.Helper()
	answer := ""
	for _, file := range cProbes {
		out, err := all[file].frame([]abi.Record{call(op, value, arg)}, 0)
		if err != nil || len(out) != 1 {
			t.Fatalf("%s: %s(%q, %q): %d records, %v", file, op, value, arg, len(out), err)
		}
		if file == cProbes[0] {
			answer = string(out[0].Value)
		}
		if got := string(out[0].Value); got != answer {
			t.Fatalf("%s: %s(%q, %q) = %q, but %q in %s", file, op, value, arg, got, answer, cProbes[0])
		}
	}
	return answer
}

func TestCNumbers(t *testing.T) {
	all := probes(t)
	for _, c := range []struct{ op, value, arg, want string }{
		{"scaled", "1.005", "2", "101"},
		{"scaled", "1.00499999999999999999999", "2", "100"},
		{"scaled", "-1.005", "2", "-101"},
		{"scaled", "0.004", "2", "0"},
		{"scaled", "-0.004", "2", "0"},
		{"scaled", "-0.005", "2", "-1"},
		{"scaled", "12", "2", "1200"},
		{"scaled", "12.5", "0", "13"},
		{"scaled", "1e2", "2", "10000"},
		{"scaled", "1.2345E+3", "0", "1235"},
		{"scaled", "12345e-4", "2", "123"},
		{"scaled", "5e-1", "0", "1"},
		{"scaled", "4e-1", "0", "0"},
		{"scaled", "9e-2", "0", "0"},
		{"scaled", "0e999999999999", "2", "0"},
		{"scaled", "1e999999999999", "2", "no"},
		{"scaled", "1e-999999999999", "2", "0"},
		{"scaled", "1234", "-2", "12"},
		{"scaled", "92233720368547758.07", "2", "9223372036854775807"},
		{"scaled", "92233720368547758.075", "2", "no"},
		{"scaled", "-92233720368547758.08", "2", "-9223372036854775808"},
		{"scaled", "184467440737095516.155", "2", "no"},
		{"scaled", "000000000000000000000000001.5", "0", "2"},
		{"integer", "12", "", "12"},
		{"integer", "-12", "", "-12"},
		{"integer", "12.0", "", "12"},
		{"integer", "12.5", "", "no"},
		{"integer", "1.5e1", "", "15"},
		{"integer", "1.55e1", "", "no"},
		{"integer", "9223372036854775807", "", "9223372036854775807"},
		{"integer", "9223372036854775808", "", "no"},
		{"integer", "-9223372036854775808", "", "-9223372036854775808"},
		{"integer", "", "", "no"},
		{"integer", "-", "", "no"},
		{"integer", "1.", "", "no"},
		{"integer", ".5", "", "no"},
		{"integer", "1e", "", "no"},
		{"integer", "1e+", "", "no"},
		{"integer", "1x", "", "no"},
		{"integer", "1.2.3", "", "no"},
		{"integer", "+1", "", "no"},
		{"integer", "1 ", "", "no"},
		{"integer", "e5", "", "no"},
		{"integer", "1e5.0", "", "no"},
		{"put-int", "-9223372036854775808", "", "-9223372036854775808"},
		{"put-int", "0", "", "0"},
		{"put-scaled", "5", "2", "0.05"},
		{"put-scaled", "-5", "2", "-0.05"},
		{"put-scaled", "12345", "0", "12345"},
		{"put-scaled", "-9223372036854775808", "18", "-9.223372036854775808"},
		{"div", "7", "2", "4"},
		{"div", "-7", "2", "-4"},
		{"div", "7", "-2", "-4"},
		{"div", "5", "3", "2"},
		{"div", "4", "3", "1"},
		{"div", "-9223372036854775808", "1", "-9223372036854775808"},
		{"div", "9223372036854775807", "9223372036854775807", "1"},
	} {
		if got := ask(t, all, c.op, []byte(c.value), c.arg); got != c.want {
			t.Errorf("%s(%q, %s) = %s, want %s", c.op, c.value, c.arg, got, c.want)
		}
	}
}

// halfAway is x rounded half away from zero, or "no" if that does not fit 64 bits.
func halfAway(x *big.Rat) string {
	twice := new(big.Rat).Add(new(big.Rat).Abs(x), big.NewRat(1, 2))
	n := new(big.Int).Quo(twice.Num(), twice.Denom())
	if x.Sign() < 0 {
		n.Neg(n)
	}
	if !n.IsInt64() {
		return "no"
	}
	return n.String()
}

func TestCScaledIsExact(t *testing.T) {
	all := probes(t)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`-?(0|[1-9][0-9]{0,21})(\.[0-9]{1,21})?([eE][+-]?[0-9]{1,2})?`).Draw(t, "text")
		scale := rapid.IntRange(0, 9).Draw(t, "scale")
		x, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatalf("oracle cannot read %q", text)
		}
		x.Mul(x, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)))
		if got, want := ask(t, all, "scaled", []byte(text), strconv.Itoa(scale)), halfAway(x); got != want {
			t.Fatalf("%s at scale %d = %s, want %s", text, scale, got, want)
		}
	})
}

func TestCIntegersAndQuotients(t *testing.T) {
	all := probes(t)
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64().Draw(t, "a"), rapid.Int64().Filter(func(b int64) bool { return b != 0 && b != -1 }).Draw(t, "b")
		if got := ask(t, all, "put-int", fmt.Append(nil, a), ""); got != strconv.FormatInt(a, 10) {
			t.Fatalf("%d is written as %s", a, got)
		}
		if got, want := ask(t, all, "div", fmt.Append(nil, a), fmt.Sprint(b)), halfAway(new(big.Rat).SetFrac(big.NewInt(a), big.NewInt(b))); got != want {
			t.Fatalf("%d / %d = %s, want %s", a, b, got, want)
		}
		scale := rapid.IntRange(0, 18).Draw(t, "scale")
		power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
		if got, want := ask(t, all, "put-scaled", fmt.Append(nil, a), fmt.Sprint(scale)), new(big.Rat).SetFrac(big.NewInt(a), power).FloatString(scale); got != want {
			t.Fatalf("%d with scale %d is written as %s, want %s", a, scale, got, want)
		}
	})
}

func TestCOutput(t *testing.T) {
	for file, c := range probes(t) {
		t.Run(file, func(t *testing.T) {
			long := strings.Repeat("0123456789", 30)
			recs := []abi.Record{
				call("pass", []byte("p"), "x"), call("drop", nil, ""), call("repeat", []byte(long), "2000"), call("dead", []byte("why"), ""),
				call("fail", nil, ""), call("as-key", []byte("k"), "3"), call("null", nil, ""), call("repeat", []byte("s"), "1"),
				call("repeat", []byte(long), "1"), call("pass", nil, ""), call("as-key", []byte(long), "1000"), call("pass", []byte("q"), ""),
			}
			for i := range recs {
				recs[i].Index, recs[i].Flags, recs[i].EventTime = uint32(i), abi.FlagEventTime, 7000
			}
			out, err := c.frame(recs, abi.FlagLast)
			if err != nil {
				t.Fatal(err)
			}
			made := func(i uint32, key, value string) string {
				r := abi.Record{Index: i, Flags: abi.FlagEventTime, EventTime: 7000, Key: []byte(key), Value: []byte(value)}
				return show(&r)
			}
			passed := func(i int) string {
				r := recs[i]
				r.Port = 1
				return show(&r)
			}
			tombstone := abi.Record{Index: 6, Flags: abi.FlagEventTime, EventTime: 7000, Key: []byte("k")}
			want := []string{
				passed(0), made(2, "repeat", strings.Repeat(long, 2000)),
				show(&abi.Record{Index: 3, Kind: abi.KindDeadLetter, Partition: 3, Value: []byte("why")}),
				show(&abi.Record{Index: 4, Kind: abi.KindFail, Partition: 4, Value: []byte{}}),
				made(5, "key k", "kkk"), show(&tombstone), made(7, "repeat", "s"), made(8, "repeat", long), passed(9),
				made(10, "key "+long, strings.Repeat(long, 1000)), passed(11),
				show(&abi.Record{Index: abi.NoIndex, Port: 1, Value: []byte("12")}),
			}
			for i := range out {
				if i < len(want) && show(&out[i]) != want[i] {
					t.Errorf("record %d:\n got %s\nwant %s", i, show(&out[i]), want[i])
				}
			}
			if len(out) != len(want) {
				t.Errorf("%d records, want %d", len(out), len(want))
			}
		})
	}
}

func TestCStartAndErrors(t *testing.T) {
	p, err := cGuest(t, "test/probe.wasm", `{"name":"a name","other":[1]}`)
	if err != nil {
		t.Fatal(err)
	}
	out, err := cCall(p, []abi.Record{call("config", nil, "")}, 0)
	if err != nil || len(out) != 1 || string(out[0].Value) != "a name" {
		t.Errorf("config: %v, %v", out, err)
	}
	_, err = cGuest(t, "test/probe.wasm", `{"name":1}`)
	if err == nil || !strings.Contains(err.Error(), "name is a number") {
		t.Errorf("a bad config: %v", err)
	}
	first, bad := call("pass", nil, ""), call("error", nil, "")
	bad.Index = 1
	_, err = cCall(p, []abi.Record{first, bad}, 0)
	want := Outcome{Status: 1, Text: "it went wrong", Progress: 1}
	if got := (*Outcome)(nil); !errors.As(err, &got) || *got != want {
		t.Errorf("an error: %v, want %v", err, &want)
	}
	timer := abi.Record{Kind: abi.KindEventTimer, Index: abi.NoIndex, Key: []byte("k"), Value: []byte("sub"), Flags: abi.FlagEventTime}
	out, err = cCall(p, []abi.Record{timer}, 0)
	if err != nil || len(out) != 1 || out[0].Kind != abi.KindRecord || string(out[0].Value) != "sub" {
		t.Errorf("a timer: %v, %v", out, err)
	}
	large := call("pass", bytes.Repeat([]byte("v"), 1<<20), "")
	if out, err = cCall(p, []abi.Record{large}, 0); err != nil || len(out) != 1 || len(out[0].Value) != 1<<20 {
		t.Errorf("a large record: %d, %v", len(out), err)
	}
}

func TestCExample(t *testing.T) {
	for _, file := range []string{"example/f1.wasm", "test/f1-swar.wasm"} {
		p, err := cGuest(t, file, "{}")
		if err != nil {
			t.Fatal(err)
		}
		locator, err := abi.NewLocator(p.Manifest().Inputs[0].Fields)
		if err != nil {
			t.Fatal(err)
		}
		for value, want := range map[string]string{
			`{"id":1,"event":"view","amount":1.00}`:          "",
			`{"id":1,"event":"click","amount":1234.565}`:     `{"id":1,"event":"click","amount":1234.565,"cents":123457}`,
			`{"event":"buy", "amount":0.07 } `:               `{"event":"buy", "amount":0.07,"cents":7}`,
			`{"event":"v\u0069ew","amount":1}`:               "",
			`{"event":"buy","amount":"1"}`:                   "dead 2 amount is not a number",
			`{"event":"buy"}`:                                "dead 2 amount is not a number",
			`{"event":"buy","amount":1`:                      "dead 1 not JSON",
			`{"amount":-2.675e1,"event":"viewer"}`:           `{"amount":-2.675e1,"event":"viewer","cents":-2675}`,
			`{"amount":1,"event":"view","event":"purchase"}`: `{"amount":1,"event":"view","event":"purchase","cents":100}`,
		} {
			r := abi.Record{Value: []byte(value), Fields: make([]abi.Field, locator.Len())}
			if !locator.Locate(r.Value, r.Fields) {
				r.Flags = abi.FlagNotJSON
			}
			out, err := cCall(p, []abi.Record{r}, 0)
			got := ""
			if len(out) == 1 {
				got = string(out[0].Value)
				if out[0].Kind == abi.KindDeadLetter {
					got = fmt.Sprintf("dead %d %s", out[0].Partition, got)
				}
			}
			if err != nil || got != want {
				t.Errorf("%s: %s becomes %s, want %s; %v", file, value, got, want, err)
			}
		}
	}
}
