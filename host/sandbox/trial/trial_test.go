package trial

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/abi/kit"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/sandbox"
)

func engines(t *testing.T) (compiler, interpreter sandbox.Engine) {
	t.Helper()
	var out []sandbox.Engine
	for _, c := range []sandbox.Config{{}, {Interpreter: true}} {
		e, err := sandbox.New(c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := e.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		out = append(out, e)
	}
	return out[0], out[1]
}

// slow or endless guests of the kit, which use up fuel that is enough for minutes.
func endless(name string) bool {
	return strings.HasSuffix(name, "-loop") || name == "log-million" || name == "end-depth" || strings.Contains(name, "16m") || name == "log-flood"
}

// TestEveryGuestOfTheKitGetsAnAnswer: good, bad and hostile modules are refused with a code and a way out, or get a
// report; a guest that breaks the contract fails a check, and a good one fails none.
func TestEveryGuestOfTheKitGetsAnAnswer(t *testing.T) {
	compiler, interpreter := engines(t)
	cases, err := kit.Load()
	if err != nil {
		t.Fatal(err)
	}
	refused, tried := 0, 0
	for i := range cases {
		c := &cases[i]
		if endless(c.Name) {
			continue
		}
		config, err := abi.CanonicalJSON(c.Config)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(t.Context(), compiler, interpreter, sandbox.Binary{Name: c.Name, Wasm: c.Wasm, Sidecar: c.Sidecar},
			Options{Config: config, Limits: sandbox.Limits{Memory: c.Limits.Memory, Output: c.Limits.Output}})
		var f *fault.Error
		switch {
		case errors.As(err, &f):
			refused++
			if f.Code() == "" || f.Hint() == "" {
				t.Errorf("%s: refused without code or way out: %v", c.Name, err)
			}
			if c.Refuse == nil && len(c.Needs) == 0 {
				t.Errorf("%s: refused, and the kit has it taken: %v", c.Name, err)
			}
		case err != nil:
			t.Errorf("%s: %v", c.Name, err)
		default:
			tried++
			if len(r.Checks) < 8 {
				t.Errorf("%s: only %d checks", c.Name, len(r.Checks))
			}
		}
	}
	if refused < 50 || tried < 50 {
		t.Errorf("%d refused and %d tried: the kit is not what it was", refused, tried)
	}
}

func try(t *testing.T, name string) *Report {
	t.Helper()
	cases, err := kit.Load()
	if err != nil {
		t.Fatal(err)
	}
	for i := range cases {
		if cases[i].Name != name {
			continue
		}
		compiler, interpreter := engines(t)
		r, err := Run(t.Context(), compiler, interpreter, sandbox.Binary{Name: name, Wasm: cases[i].Wasm}, Options{Config: []byte("{}")})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	t.Fatalf("the kit has no %s", name)
	return nil
}

func TestChecks(t *testing.T) {
	for _, tt := range []struct {
		guest   string
		check   string
		outcome Outcome
		detail  string
	}{
		{"echo", "takes many records", Pass, "3000 in, 3000 out"},
		{"echo", "ends a lane", Pass, "8 times"},
		{"echo", "runs alike twice", Pass, "8 inputs: the same output, fuel and memory"},
		{"echo", "nests its calls", Pass, "no deeper than 16 of 1000"},
		{"echo", "keeps away from its limits", Pass, "of the fuel of a call"},
		{"echo", "gives output", Pass, "out 3114"},
		{"virtual", "runs alike twice", Pass, "8 inputs"}, // looks at the clock and at chance, which are pinned
		{"silent", "gives output", Warn, "out 0"},
		{"status-7", "takes empty values", Warn, "fails on 3 of 3 records, the first `(empty)`: status 7"},
		{"status-7", "ends a lane", Warn, "no input came to its end"},
		{"emit-port", "keeps to the contract", Fail, "trap emit: port 2 of 2"},
		{"emit-dead-twice", "keeps to the contract", Fail, "trap emit"},
		{"end-unreachable", "takes its declared fields", Fail, "these are what its manifest asks for"},
		{"batch-alloc-0", "takes null values", Fail, "that fails the batch"},
		{"batch-alloc-0", "keeps to the contract", Fail, "that fails the batch"},
		{"echo", "keeps to the contract", Pass, "well-formed output and state"},
		{"state-count", "keeps state", Pass, "2 tables; tried in a stage with keys"},
		{"state-put", "takes null values", Pass, "3 in, 0 out"},
		{"state-write-table", "keeps to the contract", Fail, "trap state: table 2 of 2"},
		{"ports-bare", "keeps to the contract", Fail, "port 1 of 1"},
	} {
		r := try(t, tt.guest)
		found := false
		for _, c := range r.Checks {
			if c.Name != tt.check {
				continue
			}
			found = true
			if c.Outcome != tt.outcome || !strings.Contains(c.Detail, tt.detail) {
				t.Errorf("%s: %s is %s: %s", tt.guest, c.Name, c.Outcome, c.Detail)
			}
		}
		if !found {
			t.Errorf("%s: no check %q", tt.guest, tt.check)
		}
		if want := tt.outcome != Fail; tt.outcome != Pass && r.OK() != want {
			t.Errorf("%s: OK is %v", tt.guest, r.OK())
		}
	}
}

// TestRows reads the rows of the guest of the SDK for C, which are of the columns that its manifest has, and judges others.
func TestRows(t *testing.T) {
	wasm, err := os.ReadFile("../../../abi/sdk/c/test/rows.wasm")
	if err != nil {
		t.Fatal(err)
	}
	check := func(row []byte) error {
		schema, err := rows.RowSchema("a: string, t: timestamp(ms) not null")
		if err != nil {
			return err
		}
		return rows.NewTable(schema).Append(row)
	}
	odd, seen := errors.New("odd"), int64(0)
	for _, tt := range []struct {
		name    string
		check   RowCheck
		outcome Outcome
		detail  string
	}{
		{"as they are", func(row []byte) (bool, error) { seen++; return false, check(row) }, Pass, "and all fit its columns"},
		{"all odd", func([]byte) (bool, error) { return false, odd }, Warn, "fits its columns, the first of its declared fields: odd; a sink would set them aside"},
		{"some odd", func(row []byte) (bool, error) { return false, odd }, Pass, ", of which a sink would set "},
		{"one malformed", func(row []byte) (bool, error) { return true, odd }, Fail, "are not as its columns say, the first of null values: odd"},
	} {
		compiler, interpreter := engines(t)
		calls := 0
		o := Options{Config: []byte("{}"), Rows: func(columns string) (RowCheck, error) {
			if columns != "a: string, t: timestamp(ms) not null" {
				t.Errorf("the columns are %s", columns)
			}
			return func(row []byte) (bool, error) {
				calls++
				switch {
				case tt.name == "some odd" && calls%2 == 0:
					return false, nil
				case tt.name == "one malformed" && calls <= 64+13+3:
					return false, errors.New("another")
				}
				return tt.check(row)
			}, nil
		}}
		r, err := Run(t.Context(), compiler, interpreter, sandbox.Binary{Name: "rows", Wasm: wasm}, o)
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(r.Checks, func(c Check) bool { return c.Name == "writes rows of out" })
		if at < 0 || r.Checks[at].Outcome != tt.outcome || !strings.Contains(r.Checks[at].Detail, tt.detail) || r.OK() != (tt.outcome != Fail) {
			t.Errorf("%s: %+v", tt.name, r.Checks)
		}
	}
	if seen < 3*3000 {
		t.Errorf("%d rows were looked at", seen)
	}
	compiler, interpreter := engines(t)
	r, err := Run(t.Context(), compiler, interpreter, sandbox.Binary{Name: "rows", Wasm: wasm}, Options{Config: []byte("{}"), Rows: func(string) (RowCheck, error) { return nil, odd }})
	if err != nil || r.OK() {
		t.Errorf("columns that nobody can read: %v, %v", r, err)
	}
}

func TestAlikeFindsWhatDiffers(t *testing.T) {
	inputs := []input{{name: "one"}, {name: "two"}}
	same := []outcome{{digest: [16]byte{1}}, {digest: [16]byte{2}}}
	for _, other := range [][]outcome{
		{{digest: [16]byte{1}}, {digest: [16]byte{3}}},
		{{digest: [16]byte{1}}, {digest: [16]byte{2}, failed: "trap fuel"}},
	} {
		r := &Report{}
		r.alike("alike", inputs, same, other)
		if r.OK() || !strings.Contains(r.Checks[0].Detail, "two") || strings.Contains(r.Checks[0].Detail, "one") {
			t.Errorf("the report is %v", r.Checks)
		}
	}
}

// TestAlikeCountsFuelAndMemory, but only of runs that came to their end: of others they are not exact.
func TestAlikeCountsFuelAndMemory(t *testing.T) {
	inputs := []input{{name: "one"}}
	base := sandbox.Usage{Calls: 1, Fuel: 10, Memory: 65536}
	for _, tt := range []struct {
		used   sandbox.Usage
		failed string
		want   string
	}{
		{sandbox.Usage{Fuel: 11, Memory: 65536}, "", "other fuel for one"},
		{sandbox.Usage{Fuel: 10, Memory: 131072}, "", "other memory for one"},
		{sandbox.Usage{Fuel: 11, Memory: 65536}, "trap fuel", ""},
	} {
		r := &Report{}
		r.alike("alike", inputs, []outcome{{used: base, failed: tt.failed}}, []outcome{{used: tt.used, failed: tt.failed}})
		if r.OK() != (tt.want == "") || !strings.Contains(r.Checks[0].Detail, tt.want) {
			t.Errorf("%+v: %v", tt.used, r.Checks)
		}
	}
}

// TestUsesWarns of what comes near to a limit.
func TestUsesWarns(t *testing.T) {
	l := (&Options{}).limits()
	for _, tt := range []struct {
		out  outcome
		want Outcome
	}{
		{outcome{highest: 0.4, used: sandbox.Usage{Memory: l.Memory / 4, Output: 1}}, Pass},
		{outcome{highest: 0.6}, Warn},
		{outcome{used: sandbox.Usage{Memory: l.Memory/2 + 1}}, Warn},
		{outcome{used: sandbox.Usage{Output: l.Output}}, Warn},
	} {
		r := &Report{}
		r.uses([]outcome{{}, tt.out}, &l)
		if r.Checks[0].Outcome != tt.want {
			t.Errorf("%+v: %v", tt.out, r.Checks)
		}
	}
}

// TestEndlessGuestsEnd gives guests that do not return little fuel: a trial of them comes to its end, and says why.
func TestEndlessGuestsEnd(t *testing.T) {
	compiler, interpreter := engines(t)
	cases, err := kit.Load()
	if err != nil {
		t.Fatal(err)
	}
	ended := 0
	for i := range cases {
		c := &cases[i]
		if !strings.HasSuffix(c.Name, "-loop") {
			continue
		}
		little := sandbox.Limits{FuelCall: 10_000, FuelRecord: 10}
		r, err := Run(t.Context(), compiler, interpreter, sandbox.Binary{Name: c.Name, Wasm: c.Wasm, Sidecar: c.Sidecar}, Options{Config: []byte("{}"), Limits: little})
		var f *fault.Error
		switch {
		case strings.HasPrefix(c.Name, "start-"):
			if !errors.As(err, &f) || f.ErrCode != sandbox.CodeStart {
				t.Errorf("%s: %v", c.Name, err)
			}
		case err != nil:
			t.Errorf("%s: %v", c.Name, err)
		case r.OK():
			t.Errorf("%s: no check fails: %v", c.Name, r.Checks)
		}
		ended++
	}
	if ended < 4 {
		t.Errorf("%d endless guests", ended)
	}
}

// TestInputs keeps the generated records to what they claim to be.
func TestInputs(t *testing.T) {
	m := &abi.Manifest{Inputs: []abi.InputPort{
		{Name: "a", Fields: []string{"/x", "/x/y", "/list/0/é", "", "/a~1b"}}, {Name: "b"},
	}}
	seen := map[abi.FieldKind]bool{}
	inputs := allInputs(m, true)
	if len(inputs) != 16 {
		t.Fatalf("%d inputs for two ports", len(inputs))
	}
	for i := range inputs {
		in := &inputs[i]
		size := 0
		for from := 0; from < len(in.records); {
			to := in.chunk(from)
			if to <= from || to-from > abi.MaxChunkRecords {
				t.Fatalf("%s: a chunk of %d records", in.name, to-from)
			}
			size += to - from
			from = to
		}
		if size != len(in.records) {
			t.Errorf("%s: %d of %d records in chunks", in.name, size, len(in.records))
		}
		for k := range in.records {
			r := &in.records[k]
			if valid := r.Value != nil && json.Valid(r.Value) && r.Flags&abi.FlagNotJSON == 0; in.declared && !valid {
				t.Errorf("%s: %q is no JSON", in.name, r.Value)
			}
			if r.Key == nil {
				t.Errorf("%s: record %d has no key", in.name, k)
			}
			for _, f := range r.Fields {
				seen[f.Kind] = true
			}
		}
	}
	for kind := abi.FieldAbsent; kind <= abi.FieldArray; kind++ {
		if !seen[kind] {
			t.Errorf("no declared field is ever of kind %d", kind)
		}
	}
}
