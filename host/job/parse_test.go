package job

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// smallest is a good job file with a place to put more.
const smallest = `apiVersion: wasmill/v1
kind: Job
metadata: {name: j}
spec:
  checkpoint: ckpt
  sources: [{name: s, generator: {}}]
  sinks: [{name: o, from: [s], stdout: {}}]
`

func mistakesOf(t testing.TB, err error) *Errors {
	t.Helper()
	var all *Errors
	if !errors.As(err, &all) || len(all.List) == 0 {
		t.Fatalf("error is %v, not a filled *Errors", err)
	}
	return all
}

func TestMistakesAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString(smallest)
	for i := range 5000 {
		fmt.Fprintf(&b, "  unknown%d: 1\n", i)
	}
	_, err := Parse("job.yaml", []byte(b.String()), Env{})
	all := mistakesOf(t, err)
	if len(all.List) != maxMistakes || all.More != 5000-maxMistakes {
		t.Errorf("%d mistakes and %d more, want %d and %d", len(all.List), all.More, maxMistakes, 5000-maxMistakes)
	}
	if want := "4900 more mistakes are not shown"; !strings.HasSuffix(err.Error(), want) {
		t.Errorf("the error does not end with %q", want)
	}
}

func TestHostileTexts(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'i'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 9), ","))
	}
	for name, tt := range map[string]struct{ text, want string }{
		"too large":     {strings.Repeat("# padding\n", 200_000), "at most 1 MiB"},
		"alias bomb":    {bomb, "are not used in job files"},
		"self alias":    {"a: &a [*a]\n", "are not used in job files"},
		"flow depth":    {"a: " + strings.Repeat("[", 100_000), "job.yaml:1:"},
		"block depth":   {deepBlock(2000), "job.yaml:"},
		"many values":   {"a: [" + strings.Repeat("1,", 200_000) + "1]", "more than 100000 values"},
		"NUL":           {"a: \x00\n", "job.yaml:1:"},
		"long message":  {smallest + "  " + strings.Repeat("x", 100_000) + ": 1\n", "unknown field"},
		"long value":    {strings.Replace(smallest, "name: j", "name: "+strings.Repeat("é", 50_000), 1), "is no name"},
		"binary":        {"\x7fELF\x02\x01\x01\x00\x00", "job.yaml:1:"},
		"utf-16":        {"\xff\xfea\x00:\x00", "not UTF-8"},
		"null document": {"~\n", "expected an object, got nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("job.yaml", []byte(tt.text), Env{})
			mistakesOf(t, err)
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %.300q, want %q", err.Error(), tt.want)
			}
			if len(err.Error()) > 64<<10 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
		})
	}
}

func deepBlock(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

func TestByteOrderMarkAndCarriageReturns(t *testing.T) {
	text := "\ufeff" + strings.ReplaceAll(smallest, "\n", "\r\n")
	if _, err := Parse("job.yaml", []byte(text), Env{}); err != nil {
		t.Fatal(err)
	}
}

func TestDefaults(t *testing.T) {
	j, err := Parse("job.yaml", []byte(smallest), Env{Dir: "/jobs"})
	if err != nil {
		t.Fatal(err)
	}
	if j.Checkpoint != "/jobs/ckpt" || j.Lanes != 4 || j.Trigger != (Trigger{}) {
		t.Errorf("checkpoint %s, %d lanes, trigger %+v", j.Checkpoint, j.Lanes, j.Trigger)
	}
	if j.Errors != (ErrorPolicy{Policy: PolicyStop, Max: 1000}) || j.Retention != (Retention{Batches: 100, Age: 24 * time.Hour}) {
		t.Errorf("errors %+v, retention %+v", j.Errors, j.Retention)
	}
	if s := j.Sources[0]; s.Batch != (Batch{MaxRecords: 100_000, MaxBytes: 64 << 20}) || *s.Generator != (GeneratorSource{Kind: "orders"}) {
		t.Errorf("source %+v, %+v", s, s.Generator)
	}
}

func TestPlace(t *testing.T) {
	j, err := Parse("dir/job.yaml", []byte(smallest), Env{})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"spec.checkpoint":                "dir/job.yaml:5:15",
		"spec.sources[0].name":           "dir/job.yaml:6:20",
		"spec.sources[0].generator.seed": "dir/job.yaml:6:23",
		"spec.sinks[0].from[0]":          "dir/job.yaml:7:28",
		"spec.transforms[3].module":      "dir/job.yaml:4:1",
		"nothing.like[1].this":           "dir/job.yaml:1:1",
		"":                               "dir/job.yaml:1:1",
	} {
		if got := j.Place(path); got != want {
			t.Errorf("%s stands at %s, want %s", path, got, want)
		}
	}
}

func TestInterpolation(t *testing.T) {
	env := testEnv()
	for text, want := range map[string]string{
		"plain":                          "plain",
		"${env:DATA}/x":                  "/data/x",
		"${env:NOPE:-/tmp}":              "/tmp",
		"${env:EMPTY:-d}${env:EMPTY}":    "d",
		"${env:NOPE:-}":                  "",
		"$DATA ${DATA} ${env:DATA":       "$DATA ${DATA} ${env:DATA",
		"${file:/run/secrets/password}!": "s3cret!",
		"${env:NOPE:-a:-b}":              "a:-b",
	} {
		if got, err := env.interpolate(text); err != nil || got != want {
			t.Errorf("%s becomes %q, %v; want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"${env:NOPE}":  "the variable NOPE is not set",
		"${env:}":      "does not name a variable",
		"${env:A-B}":   "does not name a variable",
		"${file:}":     "names no file",
		"${file:nope}": "read the file nope",
	} {
		if _, err := env.interpolate(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	env.LookupEnv = func(string) (string, bool) { return "${env:DATA}\xff", true }
	if _, err := env.interpolate("${env:X}"); err == nil {
		t.Error("a variable that is not UTF-8 is taken")
	}
	env.ReadFile = func(string) ([]byte, error) { return make([]byte, maxSecret+1), nil }
	if _, err := env.interpolate("${file:x}"); err == nil {
		t.Error("a file over 64 KiB is taken")
	}
	if _, err := (&Env{}).interpolate("${env:X}${file:y}"); err == nil {
		t.Error("an empty Env finds a variable")
	}
}

// TestInterpolationDoesNotRecurse: what a variable holds is data.
func TestInterpolationDoesNotRecurse(t *testing.T) {
	env := Env{LookupEnv: func(string) (string, bool) { return "${env:X}: [\n", true }}
	if got, err := env.interpolate("${env:X}"); err != nil || got != "${env:X}: [\n" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestGlobReads(t *testing.T) {
	for _, tt := range []struct {
		pattern, dir string
		want         bool
	}{
		{"/jobs/*.jsonl", "/jobs/out", false},
		{"/jobs/*/*.jsonl", "/jobs/out", true},
		{"/jobs/*/*.jsonl", "/jobs/out/deep", false},
		{"/jobs/o?t/a/*.jsonl", "/jobs/out", true},
		{"/jobs/in/*.jsonl", "/jobs/out", false},
		{"/jobs/**/*.jsonl", "/jobs/out/deep/er", true},
		{"/jobs/in/**/*.jsonl", "/jobs/out", false},
		{"/jobs/**", "/jobs/out", true},
		{"/jobs/out/*.jsonl", "/jobs/out", true},
		{"/jobs/out/*.jsonl", "/jobs", true},
	} {
		if got := globReads(tt.pattern, tt.dir); got != tt.want {
			t.Errorf("%s reads %s: %v, want %v", tt.pattern, tt.dir, got, tt.want)
		}
	}
}

func TestTemplate(t *testing.T) {
	j, err := Parse("job.yaml", Template(), Env{Dir: "/jobs"})
	if err != nil {
		t.Fatal(err)
	}
	if len(j.Sources) != 1 || len(j.Sinks) != 1 || !strings.Contains(string(Template()), "$schema=./"+SchemaFile+"\n") {
		t.Errorf("the template has %d sources and %d sinks, or names no schema", len(j.Sources), len(j.Sinks))
	}
	v, ok := asJSON(t, Template())
	if !ok {
		t.Fatal("the template is not JSON")
	}
	if err := compiledSchema(t).Validate(v); err != nil {
		t.Error(err)
	}
	// The parts behind # are as good as the rest.
	text := strings.NewReplacer("  # transforms:", "  transforms:", "  #   ", "    ", "from: [orders]\n      files", "from: [clean]\n      files",
		"# - name: dead", "- name: dead", "  # errors: {policy", "  errors: {policy").Replace(string(Template()))
	j, err = Parse("job.yaml", []byte(text), Env{Dir: "/jobs"})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if len(j.Transforms) != 1 || j.Errors.Policy != PolicyDeadLetter {
		t.Errorf("uncommented: %d transforms, policy %s", len(j.Transforms), j.Errors.Policy)
	}
}

func FuzzParse(f *testing.F) {
	for _, path := range append(fixtures(f, "*.good.yaml"), fixtures(f, "*.bad.yaml")...) {
		f.Add(read(f, path))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		j, err := Parse("job.yaml", text, testEnv())
		if err == nil {
			if j == nil || len(j.Sources) == 0 || len(j.Sinks) == 0 || j.Checkpoint == "" {
				t.Fatalf("a job without its parts: %+v", j)
			}
			return
		}
		all := mistakesOf(t, err)
		if len(all.List) > maxMistakes {
			t.Fatalf("%d mistakes", len(all.List))
		}
		for _, m := range all.List {
			if m.Line < 1 || m.Column < 1 || m.Message == "" || !strings.HasPrefix(m.Code, "job.") {
				t.Fatalf("a mistake without place, code or message: %+v", m)
			}
		}
		if (j != nil) != all.Unsupported() {
			t.Fatalf("job %v beside %v", j, err)
		}
	})
}

// TestTornTypes: between braces the comma of a type without quotes ends it, and what YAML makes of the rest is no mistake of its own.
func TestTornTypes(t *testing.T) {
	const text = `apiVersion: wasmill/v1
kind: Job
metadata: {name: j}
spec:
  checkpoint: ./c
  sources: [{name: a, files: {path: ./in, format: jsonl}}]
  sinks: [{name: s, from: [a], delta: {path: out, schema: {id: int64, TYPES, z: date}}}]
`
	const at = "spec.sinks[0].delta.schema."
	for types, want := range map[string][]string{
		"m: map<string, int32>":                        {at + `m: a type with a comma must be quoted here: "map<string, int32>"`},
		"m: map<string, int32>, n: map<string, int32>": {at + `m: a type with a comma must be quoted here: "map<string, int32>"`, at + `n: a type with a comma must be quoted here: "map<string, int32>"`},
		"m: list<decimal(9,2)> not null":               {at + `m: a type with a comma must be quoted here: "list<decimal(9, 2)> not null"`},
		"m: map<string, struct<a: map<string, date>>>": {at + `m: a type with a comma must be quoted here: "map<string, struct<a: map<string, date>>>"`},
		"m: decimal(9, 2) not null, n: decimal(9, 2)":  {at + `m: a decimal must be quoted here, because of its comma: "decimal(9,2)"`, at + `n: a decimal must be quoted here, because of its comma: "decimal(9,2)"`},
		"m: decimal(9":                                      {at + `m: type "decimal(9": a decimal is written decimal(precision,scale)`},
		`m: "map<string", "int32>": date`:                   {at + `m: type "map<string": a map is written map<key type, value type>`},
		"m: struct<a: int32, b: string>":                    {`a type with a colon must be quoted here: "struct<name: type>", or written {name: type}`},
		"m: list<struct<a: int32>>":                         {`a type with a colon must be quoted here: "struct<name: type>", or written {name: type}`},
		`m: "map<string, int32>", n: {a: map<int32>}`:       {at + `n.a: type "map<int32>": a map is written map<key type, value type>`},
		`m: "struct<a: int32>", n: {a: {b: date, c: date}}`: nil,
	} {
		_, err := Parse("job.yaml", []byte(strings.Replace(text, "TYPES", types, 1)), testEnv())
		var got []string
		if err != nil {
			for line := range strings.Lines(err.Error()) {
				_, message, _ := strings.Cut(line, ": ")
				got = append(got, strings.TrimSpace(message))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", types, diff)
		}
	}
}
