package examples

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/abi/statemap"
	"github.com/wasmill/wasmill/host/sandbox"
)

// stateGuest is a keyed module in the sandbox, with its state in memory: the one lane of all keys.
type stateGuest struct {
	program sandbox.Program
	locator *abi.Locator
	state   statemap.Map
	late    int64 // the watermark of the batch before
}

func startGuest(t *testing.T, b sandbox.Binary) *stateGuest {
	t.Helper()
	ctx := context.Background()
	engine, err := sandbox.New(sandbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close(ctx) })
	module, err := engine.Compile(ctx, b)
	if err != nil {
		t.Fatal(err)
	}
	program, err := module.Start(ctx, sandbox.Options{Transform: b.Name, Config: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	locator, err := abi.NewLocator(program.Manifest().Inputs[0].Fields)
	if err != nil {
		t.Fatal(err)
	}
	return &stateGuest{program: program, locator: locator}
}

// keyedRecord is an input; a time of 0 is none.
type keyedRecord struct {
	key, value string
	time       int64 // milliseconds
}

// batch runs the frames of a batch of at most chunk records each, and returns what came out as "port key value".
func (g *stateGuest) batch(t *testing.T, timeMS, watermarkMS int64, chunk int, in []keyedRecord) []string {
	t.Helper()
	ctx := t.Context()
	g.state.Begin(timeMS*1000, watermarkMS*1000)
	instance, err := g.program.New(ctx, sandbox.Lane{Time: timeMS * 1000, State: &g.state, Lanes: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer instance.Close(ctx)
	header := abi.FrameHeader{BatchTime: timeMS * 1000, LateWatermark: g.late * 1000, Watermark: watermarkMS * 1000, Flags: abi.FlagFirst}
	g.late = watermarkMS
	var out []string
	call := func(recs []abi.Record, nfields int) {
		t.Helper()
		err := instance.Call(ctx, sandbox.Call{Header: header, Records: recs, NFields: nfields}, func(r *abi.Record) error {
			if r.Kind != abi.KindRecord {
				out = append(out, fmt.Sprintf("refused %d %s", r.Partition, r.Value))
				return nil
			}
			out = append(out, fmt.Sprintf("%d %s %s", r.Port, r.Key, r.Value))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		header.Flags = 0
		header.Chunk++
	}
	recs := make([]abi.Record, len(in))
	for i, r := range in {
		recs[i] = abi.Record{Key: []byte(r.key), Value: []byte(r.value), Index: uint32(i), Fields: make([]abi.Field, g.locator.Len())}
		if r.time != 0 {
			recs[i].EventTime, recs[i].Flags = r.time*1000, abi.FlagEventTime
		}
		if !g.locator.Locate(recs[i].Value, recs[i].Fields) {
			recs[i].Flags |= abi.FlagNotJSON
		}
	}
	for c := range slices.Chunk(recs, chunk) {
		call(c, g.locator.Len())
	}
	timers := map[abi.Kind][]abi.Record{}
	for _, due := range g.state.Due() {
		r := due.Record()
		timers[r.Kind] = append(timers[r.Kind], r)
	}
	for _, kind := range []abi.Kind{abi.KindEventTimer, abi.KindProcessingTimer} {
		for c := range slices.Chunk(timers[kind], chunk) {
			call(c, 0)
		}
	}
	header.Flags |= abi.FlagLast
	call(nil, 0)
	return out
}

// block is the n-th block of code of a language in a README.
func block(t *testing.T, readme, language, begins string) string {
	t.Helper()
	for _, part := range strings.Split(mustRead(t, readme), "```"+language+"\n")[1:] {
		if code, _, _ := strings.Cut(part, "```"); strings.HasPrefix(code, begins) {
			return code
		}
	}
	t.Fatalf("%s has no block of %s that begins with %q", readme, language, begins)
	return ""
}

// windowGo builds the windowed count of the Go SDK's README, by the words of the README.
func windowGo(t *testing.T) sandbox.Binary {
	t.Helper()
	const readme = "../abi/sdk/go/README.md"
	all := mustRead(t, readme)
	_, windowed, _ := strings.Cut(all, "## State, timers and windows")
	manifest := block(t, readme, "json", `{
  "abi": 1, "name": "window"`)
	_, code, _ := strings.Cut(windowed, "```go\n")
	code, _, _ = strings.Cut(code, "```")
	if n := strings.Count(code, "\n"); n > 60 {
		t.Errorf("the windowed count has %d lines, 60 are allowed", n)
	}
	return buildGo(t, "window", code, manifest)
}

// buildGo builds a module in Go as the README says, with its manifest beside it.
func buildGo(t *testing.T, name, code, manifest string) sandbox.Binary {
	t.Helper()
	dir := t.TempDir()
	sdk, err := filepath.Abs("../abi/sdk/go")
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{
		"main.go": code, "manifest.json": manifest,
		"go.mod": "module " + name + "\n\ngo 1.26.0\n\nrequire github.com/wasmill/wasmill/abi/sdk/go v0.0.0\n\nreplace github.com/wasmill/wasmill/abi/sdk/go => " + sdk + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", "module.wasm", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return sandbox.Binary{Name: name + "-go", Wasm: []byte(mustRead(t, filepath.Join(dir, "module.wasm"))), Sidecar: []byte(manifest)}
}

func windowC(t *testing.T) sandbox.Binary {
	t.Helper()
	code := block(t, "../abi/sdk/c/README.md", "c", "#include \"wasmill_state.h\"")
	_, example, _ := strings.Cut(mustRead(t, "../abi/sdk/c/example/window.c"), "#include \"../wasmill_state.h\"")
	if strings.TrimPrefix(code, "#include \"wasmill_state.h\"") != example {
		t.Error("the windowed count of the README is not example/window.c")
	}
	return sandbox.Binary{Name: "window-c", Wasm: []byte(mustRead(t, "../abi/sdk/c/example/window.wasm"))}
}

// TestWindowedCounts runs the windowed counts of the READMEs over random orders, some of them late, and compares with maps.
func TestWindowedCounts(t *testing.T) {
	for name, binary := range map[string]func(*testing.T) sandbox.Binary{"go": windowGo, "c": windowC} {
		t.Run(name, func(t *testing.T) {
			g := startGuest(t, binary(t))
			rng := rand.New(rand.NewPCG(3, 4))
			counts, opened := map[string]int{}, map[string]int{}
			var highest, watermark int64
			for n := range 12 {
				var in []keyedRecord
				var want []string
				for range rng.IntN(3000) {
					r := keyedRecord{key: "customer \"" + strconv.Itoa(rng.IntN(300)), value: "{}", time: 1_700_000_000_000 + int64(n)*7000 + rng.Int64N(20_000) - 10_000}
					in = append(in, r)
					highest = max(highest, r.time)
					start := r.time - r.time%10_000
					if start+10_000 <= g.late {
						want = append(want, fmt.Sprintf("1 %s {}", r.key))
						continue
					}
					c := fmt.Sprintf(`{"customer":%q,"window_start":%d,"count":`, r.key, start)
					if counts[c]++; counts[c] == 1 {
						opened[c] = n
					}
				}
				in = append(in, keyedRecord{key: "k", value: "7"})
				want = append(want, "refused 1 no event time")
				closing := n == 11
				for c, k := range counts {
					_, at, _ := strings.Cut(c, `"window_start":`)
					if start, _ := strconv.ParseInt(strings.TrimSuffix(at, `,"count":`), 10, 64); start+10_000 <= watermark && opened[c] < n {
						name, _, _ := strings.Cut(strings.TrimPrefix(c, `{"customer":`), `,"window`)
						key, _ := strconv.Unquote(name)
						want = append(want, fmt.Sprintf("0 %s %s%d}", key, c, k))
						delete(counts, c)
					}
				}
				got := g.batch(t, int64(n)+1, watermark, 1+rng.IntN(1024), in)
				sort.Strings(got)
				sort.Strings(want)
				if !slices.Equal(got, want) {
					t.Fatalf("batch %d: %d outputs, want %d", n, len(got), len(want))
				}
				watermark = max(watermark, highest-5000)
				if closing && len(g.state.Entries()) != len(counts) {
					t.Errorf("%d entries are left, want %d", len(g.state.Entries()), len(counts))
				}
			}
			g.batch(t, 100, 1_800_000_000_000, 1000, nil)
			if g.batch(t, 101, 1_800_000_000_000, 1000, nil); len(g.state.Entries())+len(g.state.Timers()) != 0 {
				t.Errorf("%d entries and %d timers are left", len(g.state.Entries()), len(g.state.Timers()))
			}
		})
	}
}

// TestCState does random operations through the functions of the C SDK and compares every answer, what is left and what
// fires with maps.
func TestCState(t *testing.T) {
	for _, file := range []string{"state.wasm", "state-tiny.wasm"} {
		t.Run(file, func(t *testing.T) {
			g := startGuest(t, sandbox.Binary{Name: file, Wasm: []byte(mustRead(t, "../abi/sdk/c/test/"+file))})
			m := cModel{entries: map[string]string{}, timers: map[string]bool{}, rng: rand.New(rand.NewPCG(9, 9))}
			for n := range int64(30) {
				m.now = 1000 + n*10
				var in []keyedRecord
				var want []string
				m.before = maps.Clone(m.timers)
				for range m.rng.IntN(60) {
					key := strconv.Itoa(m.rng.IntN(5))
					ops, answers := m.record(key)
					in = append(in, keyedRecord{key: key, value: ops})
					want = append(want, "0 "+key+" "+answers)
				}
				want = append(want, m.fire()...)
				if got := g.batch(t, m.now, m.now, 1+m.rng.IntN(20), in); !slices.Equal(got, want) {
					for i := range min(len(got), len(want)) {
						if got[i] != want[i] {
							t.Fatalf("batch %d, output %d:\n got %q\nwant %q", n, i, got[i], want[i])
						}
					}
					t.Fatalf("batch %d: %d outputs, want %d", n, len(got), len(want))
				}
				m.compare(t, &g.state)
			}
		})
	}
}

// cModel is state by "table key sub" and timers by "domain time key sub", times of 13 digits.
type cModel struct {
	entries map[string]string
	timers  map[string]bool
	before  map[string]bool // set by earlier batches, and not deleted since
	rng     *rand.Rand
	now     int64 // milliseconds
}

func (m *cModel) record(key string) (ops, answers string) {
	var op, answer strings.Builder
	for range m.rng.IntN(8) {
		table := m.rng.IntN(2)
		sub := []string{"", "a", "ab", "abc", "b", "a-longer-sub-key"}[m.rng.IntN(6)]
		at := fmt.Sprintf("%d %s %s", table, key, sub)
		timer := fmt.Sprintf("%d %013d %s %s", table, m.now-5+m.rng.Int64N(20), key, sub)
		us := strings.TrimLeft(timer[2:15], "0") + "000"
		switch m.rng.IntN(11) {
		case 0, 1:
			value := strings.Repeat(strconv.Itoa(m.rng.IntN(1000)), m.rng.IntN(5))
			fmt.Fprintf(&op, "put %d %s %s\n", table, sub, value)
			m.entries[at] = value
		case 2:
			fmt.Fprintf(&op, "get %d %s\n", table, sub)
			if v, ok := m.entries[at]; ok {
				answer.WriteString("=" + v)
			}
			answer.WriteString("\n")
		case 3:
			fmt.Fprintf(&op, "delete %d %s\n", table, sub)
			delete(m.entries, at)
		case 4:
			fmt.Fprintf(&op, "clear %d %s\n", table, sub)
			for k := range m.entries {
				if strings.HasPrefix(k, at) {
					delete(m.entries, k)
				}
			}
		case 5:
			fmt.Fprintf(&op, "scan %d %s\n", table, sub)
			answer.WriteString(m.scan(at, false))
		case 6:
			fmt.Fprintf(&op, "down %d %s\n", table, sub)
			answer.WriteString(m.scan(at, true))
		case 7:
			at = fmt.Sprintf("2 %s %s", key, sub)
			n, _ := strconv.ParseInt(m.entries[at], 10, 64)
			m.entries[at] = strconv.FormatInt(n+3, 10)
			fmt.Fprintf(&op, "add 2 %s 3\n", sub)
			answer.WriteString(m.entries[at] + "\n")
		case 8:
			fmt.Fprintf(&op, "set %d %s %s\n", table, sub, us)
			m.timers[timer] = true
		case 9:
			fmt.Fprintf(&op, "unset %d %s %s\n", table, sub, us)
			delete(m.timers, timer)
			delete(m.before, timer)
		case 10:
			fmt.Fprintf(&op, "until %d %s %d\n", table, sub, m.now*1000+int64(m.rng.IntN(2))*999)
			delete(m.entries, at)
		}
	}
	return op.String(), answer.String()
}

func (m *cModel) scan(at string, down bool) string {
	var found []string
	skip := strings.LastIndexByte(at, ' ') + 1
	for k, v := range m.entries {
		if strings.HasPrefix(k, at) {
			found = append(found, k[skip:]+"\x00="+v)
		}
	}
	sort.Strings(found)
	if down {
		slices.Reverse(found)
	}
	all := ""
	for _, f := range found {
		all += strings.Replace(f, "\x00", "", 1) + ","
	}
	return all + "\n"
}

// fire takes out the timers that were set before this batch and are still set.
func (m *cModel) fire() []string {
	var due []string
	for k := range m.timers {
		if m.before[k] && k[2:15] <= fmt.Sprintf("%013d", m.now) {
			due = append(due, k)
			delete(m.timers, k)
		}
	}
	sort.Strings(due)
	for i, k := range due {
		parts := strings.SplitN(k, " ", 4)
		kind, _ := strconv.Atoi(parts[0])
		due[i] = fmt.Sprintf("0 %s timer %d %s000 %s", parts[2], kind+1, strings.TrimLeft(parts[1], "0"), parts[3])
	}
	return due
}

func (m *cModel) compare(t *testing.T, s *statemap.Map) {
	t.Helper()
	left := s.Entries()
	for _, e := range left {
		want, ok := m.entries[fmt.Sprintf("%d %s %s", e.Table, e.Key, e.Sub)]
		got := string(e.Value)
		if e.Table == 2 {
			n := int64(0)
			for i, b := range e.Value {
				n |= int64(b) << (8 * i)
			}
			got = strconv.FormatInt(n, 10)
		}
		if !ok || got != want {
			t.Fatalf("%d %s %s is %q, want %q, %v", e.Table, e.Key, e.Sub, got, want, ok)
		}
	}
	if len(left) != len(m.entries) || len(s.Timers()) != len(m.timers) {
		t.Fatalf("%d entries and %d timers, want %d and %d", len(left), len(s.Timers()), len(m.entries), len(m.timers))
	}
}
