package transforms

import (
	"bufio"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/abi"
)

// builds are the modules of each transform: the same transform in several languages.
func builds(name string) map[string]string {
	if name == "convert" {
		return map[string]string{"rust": "convert-rust.wasm", "go": "convert-go.wasm"}
	}
	return map[string]string{"rust": name + ".wasm", "go": name + "-go.wasm"}
}

const flight = `{"year":2013,"dep_time":517,"dep_delay":2,"arr_delay":11,"carrier":"UA","flight":1545,"tailnum":"N14228","origin":"EWR","dest":"IAH","air_time":227,"distance":1400,"time_hour":"2013-01-01T10:00:00Z"}`

func TestClean(t *testing.T) {
	const cleaned = `{"carrier":"UA","flight":1545,"tailnum":"N14228","origin":"EWR","dest":"IAH","time_hour":"2013-01-01T10:00:00Z","dep_delay":2,"arr_delay":11,"gain":-9,"mph":370.0,"late":false}`
	tests := []struct {
		name, in string
		want     out
	}{
		{"a flight", flight, out{Value: cleaned}},
		{"blanks", ` { "dep_time" : 1 , "origin" : "A" } `, out{Value: `{"carrier":null,"flight":null,"tailnum":null,"origin":"A","dest":null,"time_hour":null,"dep_delay":null,"arr_delay":null,"gain":null,"mph":null,"late":null}`}},
		{"escapes stay", `{"dep_time":1,"origin":"\u0041\"","dest":"ü\n"}`, out{Value: `{"carrier":null,"flight":null,"tailnum":null,"origin":"\u0041\"","dest":"ü\n","time_hour":null,"dep_delay":null,"arr_delay":null,"gain":null,"mph":null,"late":null}`}},
		{"late, half up", `{"dep_time":1,"origin":"A","dep_delay":-3,"arr_delay":15,"distance":1,"air_time":8}`, out{Value: `{"carrier":null,"flight":null,"tailnum":null,"origin":"A","dest":null,"time_hour":null,"dep_delay":-3,"arr_delay":15,"gain":-18,"mph":7.5,"late":true}`}},
		{"half of a tenth", `{"dep_time":1,"origin":"A","distance":1,"air_time":48}`, out{Value: `{"carrier":null,"flight":null,"tailnum":null,"origin":"A","dest":null,"time_hour":null,"dep_delay":null,"arr_delay":null,"gain":null,"mph":1.3,"late":null}`}},
		{"no air time", `{"dep_time":1,"origin":"A","distance":1,"air_time":0}`, out{Value: `{"carrier":null,"flight":null,"tailnum":null,"origin":"A","dest":null,"time_hour":null,"dep_delay":null,"arr_delay":null,"gain":null,"mph":null,"late":null}`}},
		{"cancelled", `{"dep_time":null, "origin":"JFK" }`, out{Port: 1, Value: `{"dep_time":null, "origin":"JFK" }`}},
		{"dep_time absent", `{"origin":"JFK"}`, out{Port: 1, Value: `{"origin":"JFK"}`}},
		{"not JSON", `{"origin":"JFK"`, dead(1, "the value is not JSON")},
		{"empty", ``, dead(1, "the value is not JSON")},
		{"an array", `[1]`, dead(2, "origin is missing")},
		{"origin null", `{"origin":null,"dep_time":null}`, dead(2, "origin is missing")},
		{"origin a number", `{"origin":7,"dep_time":1}`, dead(0, "/origin is not a string: 7")},
		{"a fraction", `{"origin":"A","dep_time":1,"arr_delay":1.5}`, dead(0, "/arr_delay is not a 64-bit integer: 1.5")},
		{"an exponent", `{"origin":"A","dep_time":1,"flight":1e3}`, dead(0, "/flight is not a 64-bit integer: 1e3")},
		{"too large", `{"origin":"A","dep_time":1,"dep_delay":9223372036854775808}`, dead(0, "/dep_delay is not a 64-bit integer: 9223372036854775808")},
		{"gain overflows", `{"origin":"A","dep_time":1,"dep_delay":-9223372036854775808,"arr_delay":1}`, dead(3, "gain is out of range")},
		{"no gain, no overflow", `{"origin":"A","dep_time":1,"arr_delay":-9223372036854775808}`, out{Value: `{"carrier":null,"flight":null,"tailnum":null,"origin":"A","dest":null,"time_hour":null,"dep_delay":null,"arr_delay":-9223372036854775808,"gain":null,"mph":null,"late":false}`}},
		{"mph overflows", `{"origin":"A","dep_time":1,"distance":9223372036854775807,"air_time":1}`, dead(4, "mph is out of range")},
	}
	for lang, module := range builds("clean") {
		t.Run(lang, func(t *testing.T) {
			g := start(t, "clean", module, "")
			var in []string
			var want []out
			for i, tt := range tests {
				in = append(in, tt.in)
				tt.want.Index = uint32(i)
				want = append(want, tt.want)
			}
			if diff := cmp.Diff(want, g.run(t, in)); diff != "" {
				t.Errorf("outputs (-want +got):\n%s", diff)
			}
		})
	}
}

func dead(code int32, reason string) out {
	return out{Kind: abi.KindDeadLetter, Code: code, Value: reason}
}

// flights are the lines of the real data that the example runs on.
func flights(tb testing.TB) []string {
	tb.Helper()
	dir := os.Getenv("WASMILL_FLIGHTS")
	if dir == "" {
		dir = filepath.Join("..", "examples", "flights", "data")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl.gz"))
	if err != nil {
		tb.Fatal(err)
	}
	if len(files) == 0 {
		tb.Skipf("no flights in %s: the example's data is not there", dir)
	}
	slices.Sort(files)
	var lines []string
	for _, f := range files {
		lines = append(lines, gunzip(tb, f)...)
	}
	return lines
}

func gunzip(tb testing.TB, file string) []string {
	tb.Helper()
	f, err := os.Open(file)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	var lines []string
	s := bufio.NewScanner(z)
	for s.Scan() {
		lines = append(lines, s.Text())
	}
	if err := s.Err(); err != nil {
		tb.Fatal(err)
	}
	return lines
}

// row is a cleaned flight, as numbers that can be added up.
type row struct {
	Gain *int64       `json:"gain"`
	MPH  *jsonDecimal `json:"mph"`
	Late *bool        `json:"late"`
}

// jsonDecimal is a number with one decimal, in tenths.
type jsonDecimal int64

func (d *jsonDecimal) UnmarshalJSON(text []byte) error {
	n := int64(0)
	for _, c := range text {
		if c >= '0' && c <= '9' {
			n = n*10 + int64(c-'0')
		}
	}
	*d = jsonDecimal(n)
	return nil
}

// sums are what an independent program in Python counted over the 27,004 flights of January.
type sums struct{ Flights, Cancelled, Gains, Gain, MPHs, MPHTenths, Lates, Late int64 }

func TestCleanRealFlights(t *testing.T) {
	lines := flights(t)
	for lang, module := range builds("clean") {
		t.Run(lang, func(t *testing.T) {
			var got sums
			for _, o := range start(t, "clean", module, "").run(t, lines) {
				got.add(t, o)
			}
			if diff := cmp.Diff(oracle, got); diff != "" {
				t.Errorf("sums (-want +got):\n%s", diff)
			}
		})
	}
}

func (s *sums) add(t *testing.T, o out) {
	t.Helper()
	if o.Kind != abi.KindRecord {
		t.Fatalf("record %d: dead letter %d %s", o.Index, o.Code, o.Value)
	}
	if o.Port == 1 {
		s.Cancelled++
		return
	}
	s.Flights++
	var r row
	fromJSON(t, o.Value, &r)
	if r.Gain != nil {
		s.Gains++
		s.Gain += *r.Gain
	}
	if r.MPH != nil {
		s.MPHs++
		s.MPHTenths += int64(*r.MPH)
	}
	if r.Late != nil {
		s.Lates++
		if *r.Late {
			s.Late++
		}
	}
}

var oracle = sums{Flights: 26483, Cancelled: 521, Gains: 26398, Gain: 101778, MPHs: 26398, MPHTenths: 97803763, Lates: 26398, Late: 6201}
