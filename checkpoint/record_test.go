package checkpoint

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s: %s", name, diff)
	}
}

// The bytes of the records outlive every version.
func TestGoldenRecords(t *testing.T) {
	p, d := plan(3), decision(3)
	text, err := encodePlan(&p)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "offsets-3", text)
	back, foreign, err := decodePlan(3, text)
	if err != nil || foreign {
		t.Fatalf("decode: %v, foreign %v", err, foreign)
	}
	if diff := cmp.Diff(&p, back); diff != "" {
		t.Error(diff)
	}
	text, err = encodeDecision(&d)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "commits-3", text)
	decided, foreign, err := decodeDecision(3, text)
	if err != nil || foreign {
		t.Fatalf("decode: %v, foreign %v", err, foreign)
	}
	if diff := cmp.Diff(&d, decided); diff != "" {
		t.Error(diff)
	}
}

// No damaged byte goes unnoticed, nor a lost end, nor one that is too much.
func TestDamagedRecordsAreNoticed(t *testing.T) {
	p, d := plan(3), decision(3)
	planText, err := encodePlan(&p)
	if err != nil {
		t.Fatal(err)
	}
	decisionText, err := encodeDecision(&d)
	if err != nil {
		t.Fatal(err)
	}
	accepted := func(record []byte, isPlan bool) bool {
		if isPlan {
			_, foreign, err := decodePlan(3, record)
			return err == nil && !foreign
		}
		_, foreign, err := decodeDecision(3, record)
		return err == nil && !foreign
	}
	for _, record := range [][]byte{planText, decisionText} {
		isPlan := &record[0] == &planText[0]
		for i := range record {
			for bit := range 8 {
				record[i] ^= 1 << bit
				if accepted(record, isPlan) {
					t.Errorf("bit %d of byte %d flipped: accepted as %q", bit, i, record)
				}
				record[i] ^= 1 << bit
			}
			if accepted(record[:i], isPlan) {
				t.Errorf("cut at %d: accepted", i)
			}
		}
		if !accepted(append(record, '\n'), isPlan) {
			t.Error("one LF at the end must be accepted")
		}
		if accepted(append(record, "\n\n"...), isPlan) || accepted(append(record, 0), isPlan) {
			t.Error("garbage at the end was accepted")
		}
	}
}

func TestDecodePlansOfOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		text    string
		want    *Plan
		foreign bool
	}{
		"spark": {
			"v1\n{\"batchWatermarkMs\":5,\"batchTimestampMs\":1645693802625,\"conf\":{\"spark.sql.shuffle.partitions\":\"5\",\"k\":\"v\"}}\n1\n-\n{\"t\":{\"0\":23}}",
			&Plan{Batch: 7, TimeMS: 1645693802625, WatermarkMS: 5, Conf: map[string]string{"k": "v"}, Sources: []SourcePosition{
				{Name: "0", End: Position{Line: "1"}}, {Name: "1"}, {Name: "2", End: Position{Line: `{"t":{"0":23}}`}},
			}}, true,
		},
		"all keys missing":  {"v1\n{}\n345\n", &Plan{Batch: 7, Conf: map[string]string{}, Sources: []SourcePosition{{Name: "0", End: Position{Line: "345"}}}}, true},
		"unknown keys":      {"v1\n{\"x\":[1,{}],\"batchTimestampMs\":9}", &Plan{Batch: 7, TimeMS: 9, Conf: map[string]string{}}, true},
		"edited by hand":    {"v1\n{\"conf\":{\"wasmill.sources\":\"[\\\"a\\\"]\",\"wasmill.check\":\"none\",\"wasmill.version\":\"1\"}}\n7", &Plan{Batch: 7, Conf: map[string]string{}, Sources: []SourcePosition{{Name: "a", End: Position{Line: "7"}}}}, false},
		"exact big numbers": {"v1\n{\"batchTimestampMs\":9223372036854775807}\n{\"logOffset\":9007199254740993}", &Plan{Batch: 7, TimeMS: 9223372036854775807, Conf: map[string]string{}, Sources: []SourcePosition{{Name: "0", End: Position{Line: `{"logOffset":9007199254740993}`}}}}, true},
	} {
		got, foreign, err := decodePlan(7, []byte(tc.text))
		if err != nil || foreign != tc.foreign {
			t.Errorf("%s: %v, foreign %v", name, err, foreign)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestDecodePlanRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":            {"", "empty"},
		"only a version":     {"v1", "second line is missing"},
		"empty second line":  {"v1\n\n1", "second line is missing"},
		"no version":         {"{\"batchWatermarkMs\":0}", "first line"},
		"version 0":          {"v0\n{}", "first line"},
		"no number":          {"vx\n{}", "first line"},
		"windows line end":   {"v1\r\n{}", "first line"},
		"not JSON":           {"v1\n{\"batchWatermarkMs\":", "second line"},
		"JSON and more":      {"v1\n{} {}\n1", "second line"},
		"key twice":          {"v1\n{\"conf\":{\"a\":\"1\",\"a\":\"2\"}}", "second line"},
		"number as text":     {"v1\n{\"batchWatermarkMs\":\"0\"}", "second line"},
		"too large a number": {"v1\n{\"batchWatermarkMs\":9223372036854775808}", "second line"},
		"a fraction":         {"v1\n{\"batchWatermarkMs\":1.5}", "second line"},
		"conf not of texts":  {"v1\n{\"conf\":{\"a\":1}}", "second line"},
		"bad UTF-8":          {"v1\n{\"conf\":{\"a\":\"\xff\"}}", "second line"},
		"bad offset":         {"v1\n{}\n{\"logOffset\":1", "not JSON"},
		"empty offset line":  {"v1\n{}\n1\n\n", "not JSON"},
		"deep nesting":       {"v1\n{}\n" + strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000), "not JSON"},
		"one source missing": {"v1\n{\"conf\":{\"wasmill.check\":\"none\",\"wasmill.sources\":\"[\\\"a\\\",\\\"b\\\"]\"}}\n1", "2 sources are named and 1"},
		"name twice":         {"v1\n{\"conf\":{\"wasmill.check\":\"none\",\"wasmill.sources\":\"[\\\"a\\\",\\\"a\\\"]\"}}\n1\n2", "there twice"},
		"name empty":         {"v1\n{\"conf\":{\"wasmill.check\":\"none\",\"wasmill.sources\":\"[\\\"\\\"]\"}}\n1", "is empty"},
		"names not a list":   {"v1\n{\"conf\":{\"wasmill.check\":\"none\",\"wasmill.sources\":\"{}\"}}\n1", "wasmill.sources"},
		"no checksum":        {"v1\n{\"conf\":{\"wasmill.sources\":\"[]\"}}", "no checksum"},
		"wrong checksum":     {"v1\n{\"conf\":{\"wasmill.check\":\"00000000\",\"wasmill.sources\":\"[]\"}}", "does not match"},
		"short checksum":     {"v1\n{\"conf\":{\"wasmill.check\":\"\\u0030\",\"wasmill.sources\":\"[]\"}}", "does not match"},
	} {
		_, _, err := decodePlan(7, []byte(tc.text))
		if err == nil || errors.Is(err, errFuture) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

func TestDecodeDecisions(t *testing.T) {
	for text, want := range map[string]int64{
		"v1": 0, "v1\n": 0, "v1\n{}": 0, "v1\n{\"nextBatchWatermarkMs\":17}": 17,
		"v1\n{\"nextBatchWatermarkMs\":1,\"stateUniqueIds\":{}}": 1,
	} {
		d, foreign, err := decodeDecision(4, []byte(text))
		if err != nil || !foreign || d.NextWatermarkMS != want || d.Batch != 4 {
			t.Errorf("%q: %+v, %v", text, d, err)
		}
	}
	for text, want := range map[string]string{
		"":                     "empty",
		"v1\n{":                "second line",
		"v1\n{}\n{}":           "3 lines",
		"v1\n{\"wasmill\":{}}": "wasmill.version is missing",
		"v1\n{\"wasmill\":1}":  "second line",
		"v1\n{\"wasmill\":{\"version\":1,\"targets\":{\"a\":{\"last\":\"1\"}}}}": "second line",
		"v1\n{\"wasmill\":{\"version\":1}}":                                      "no checksum",
	} {
		_, _, err := decodeDecision(4, []byte(text))
		if err == nil || errors.Is(err, errFuture) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// A newer format is never taken for a torn record, whatever else has changed in it.
func TestNewerFormatsAreRefusedInWords(t *testing.T) {
	for _, text := range []string{
		"v2\n{}\n0:{\"topicA\":{\"0\":23}}\n1:-", "v10\n", "v1\n{\"conf\":{\"wasmill.version\":\"2\",\"wasmill.sources\":\"{}\"}}",
	} {
		if _, _, err := decodePlan(1, []byte(text)); !errors.Is(err, errFuture) || !strings.Contains(err.Error(), "newest known") {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"v2\n{}", "v1\n{\"wasmill\":{\"version\":2,\"targets\":[],\"digest\":7}}"} {
		if _, _, err := decodeDecision(1, []byte(text)); !errors.Is(err, errFuture) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestEncodePlanRefuses(t *testing.T) {
	for name, change := range map[string]func(*Plan){
		"a line with an end":          func(p *Plan) { p.Sources[0].End.Line = "{\"a\":\n1}" },
		"a line not of JSON":          func(p *Plan) { p.Sources[0].End.Line = "{" },
		"a line that means no offset": func(p *Plan) { p.Sources[0].End.Line = "-" },
		"a name that is empty":        func(p *Plan) { p.Sources[0].Name = "" },
		"a key of ours":               func(p *Plan) { p.Conf = map[string]string{"wasmill.sources": "[]"} },
		"a source's key":              func(p *Plan) { p.Conf = map[string]string{"wasmill.source.x": "1"} },
	} {
		p := plan(0)
		change(&p)
		if text, err := encodePlan(&p); err == nil {
			t.Errorf("%s: encoded as %q", name, text)
		}
	}
}

func texts() *rapid.Generator[string] { return rapid.StringN(0, 20, 60) }

func genPlan(t *rapid.T) *Plan {
	p := &Plan{
		Batch: BatchID(rapid.Int64Min(0).Draw(t, "batch")), TimeMS: rapid.Int64().Draw(t, "time"), WatermarkMS: rapid.Int64().Draw(t, "watermark"),
		Conf:  rapid.MapOf(rapid.Map(texts(), func(s string) string { return "k." + s }), texts()).Draw(t, "conf"),
		Reads: rapid.MapOf(texts(), texts()).Draw(t, "reads"),
	}
	names := rapid.SliceOfNDistinct(rapid.StringN(1, 20, 60), 0, 4, func(s string) string { return s }).Draw(t, "names")
	for _, n := range names {
		line := rapid.SampledFrom([]string{"", "7", `{"logOffset":345}`, `{"a,b\n":{"0":23}}`, `"\u0000"`, "[]", `{"wasmill.check":"00000000"}`}).Draw(t, "line")
		p.Sources = append(p.Sources, SourcePosition{Name: n, End: Position{Line: line, Extra: texts().Draw(t, "extra")}})
	}
	return p
}

func TestPlansComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := genPlan(t)
		text, err := encodePlan(p)
		if err != nil {
			t.Fatal(err)
		}
		back, _, err := decodePlan(p.Batch, text)
		if err != nil {
			t.Fatalf("%v in %q", err, text)
		}
		if diff := cmp.Diff(p, back, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestDecisionsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		digests := rapid.MapOf(texts(), rapid.Custom(func(t *rapid.T) Digest {
			return Digest{Records: rapid.Int64().Draw(t, "records"), XXH3: texts().Draw(t, "xxh3")}
		}))
		d := &Decision{
			Batch: 3, NextWatermarkMS: rapid.Int64().Draw(t, "watermark"), Digest: texts().Draw(t, "digest"), Revision: texts().Draw(t, "revision"),
			Semantics: rapid.Int().Draw(t, "semantics"), Inputs: digests.Draw(t, "in"), Outputs: digests.Draw(t, "out"),
			State: texts().Draw(t, "state"), Attempt: texts().Draw(t, "attempt"),
			Host: Host{Version: texts().Draw(t, "version"), Engine: texts().Draw(t, "engine"), Arch: texts().Draw(t, "arch")},
			Targets: rapid.MapOf(texts(), rapid.Custom(func(t *rapid.T) TargetOutcome {
				staged := rapid.SampledFrom([]string{"", `{"check":"00000000"}`, `[1.0,"<&>\u2028"]`}).Draw(t, "staged")
				return TargetOutcome{Staged: []byte(staged), Last: BatchID(rapid.Int64().Draw(t, "last")), Digest: texts().Draw(t, "digest")}
			})).Draw(t, "targets"),
			Sources: rapid.MapOf(texts(), rapid.Custom(func(t *rapid.T) SourceOutcome {
				return SourceOutcome{Records: rapid.Int64().Draw(t, "n"), WatermarkMS: rapid.Int64().Draw(t, "wm"), Idle: rapid.Bool().Draw(t, "idle")}
			})).Draw(t, "sources"),
		}
		text, err := encodeDecision(d)
		if err != nil {
			t.Fatal(err)
		}
		back, _, err := decodeDecision(3, text)
		if err != nil {
			t.Fatalf("%v in %q", err, text)
		}
		if diff := cmp.Diff(d, back, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestDecisionsOfOtherVersions: one that does not say who decided it reads as such and is written as it was, and what a
// reader does not know of the host it passes over.
func TestDecisionsOfOtherVersions(t *testing.T) {
	d := decision(3)
	text, err := encodeDecision(&d)
	if err != nil || strings.Contains(string(text), `"host"`) {
		t.Fatalf("without a host: %s, %v", text, err)
	}
	d.Host = Host{Version: "v1", Engine: "compiler", Arch: "arm64"}
	if text, err = encodeDecision(&d); err != nil || !strings.Contains(string(text), `"host":{"version":"v1","engine":"compiler","arch":"arm64"}`) {
		t.Fatalf("with a host: %s, %v", text, err)
	}
	newer := strings.Replace(string(text), `"host":{`, `"host":{"kernel":{"a":1},`, 1)
	at := checkAt([]byte(newer), "check")
	newer = string(seal([]byte(newer[:at]+zeroCheck+newer[at+len(zeroCheck):]), "check"))
	if back, _, err := decodeDecision(3, []byte(newer)); err != nil || back.Host != d.Host {
		t.Errorf("with more of the host: %+v, %v", back, err)
	}
}

// Whatever is decoded can be written again, and reads the same.
func FuzzPlan(f *testing.F) {
	p := plan(3)
	text, err := encodePlan(&p)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("v1\n{\"batchWatermarkMs\":0,\"conf\":{\"wasmill.check\":\"none\",\"wasmill.sources\":\"[\\\"a\\\"]\",\"wasmill.source.a\":\"x\"}}\n-\n"))
	f.Fuzz(func(t *testing.T, record []byte) {
		p, foreign, err := decodePlan(1, record)
		if err != nil {
			return
		}
		for _, s := range p.Sources {
			if s.Name == "" || strings.Contains(s.End.Line, "\n") {
				t.Fatalf("source %+v", s)
			}
		}
		if foreign {
			return
		}
		text, err := encodePlan(p)
		if err != nil {
			for k := range p.Conf { // a key that only looks like ours
				if strings.HasPrefix(k, "wasmill.") {
					return
				}
			}
			t.Fatal(err)
		}
		back, _, err := decodePlan(1, text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(p, back, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// Whatever is decoded can be written again, and reads the same.
func FuzzDecision(f *testing.F) {
	d := decision(3)
	text, err := encodeDecision(&d)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("v1\n{\"nextBatchWatermarkMs\":1,\"wasmill\":{\"version\":1,\"check\":\"none\",\"targets\":{\"a\":{\"staged\":null,\"last\":-1}}}}"))
	f.Fuzz(func(t *testing.T, record []byte) {
		d, foreign, err := decodeDecision(1, record)
		if err != nil || foreign {
			return
		}
		text, err := encodeDecision(d)
		if err != nil {
			t.Fatal(err)
		}
		back, _, err := decodeDecision(1, text)
		if err != nil {
			t.Fatal(err)
		}
		again, err := encodeDecision(back)
		if err != nil || string(again) != string(text) {
			t.Fatalf("%v\n%s\n%s", err, text, again)
		}
	})
}
