package debuginfo

import (
	"cmp"
	"debug/dwarf"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/host/sandbox/binary"
)

// modules have been built by clang and rustc.
var modules = []string{"testdata/dwarf4.wasm", "testdata/dwarf5.wasm", "../guests/debug/trap-c.wasm", "../guests/debug/trap-rust.wasm"}

func customs(t testing.TB, file string) []binary.Custom {
	t.Helper()
	wasm, err := os.ReadFile(filepath.FromSlash(file))
	if err != nil {
		t.Fatal(err)
	}
	m, err := binary.Parse(wasm)
	if err != nil {
		t.Fatal(err)
	}
	return m.Customs
}

// places are all places that a module's code comes from, without repetitions.
func places(i *Info) [][]Place {
	var out [][]Place
	for _, r := range i.lines.rows {
		if p := i.At(r.addr); len(p) > 0 {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b []Place) int { return cmp.Or(cmp.Compare(a[0].Line, b[0].Line), cmp.Compare(len(a), len(b))) })
	return slices.CompactFunc(out, func(a, b []Place) bool { return slices.Equal(a, b) })
}

func TestInlinedPlaces(t *testing.T) {
	for _, file := range modules[:2] {
		i := Read(customs(t, file))
		name := i.lines.fileName(0)
		if filepath.Base(name) != "inline.c" {
			t.Errorf("%s: the file is %q", file, name)
		}
		in := func(line int, f string) Place { return Place{Func: f, File: name, Line: line} }
		want := [][]Place{
			{in(4, "checked"), in(10, "parse_order")},
			{in(11, "parse_order")},
			{in(17, "run")},
		}
		got := places(i)
		for _, w := range want {
			if !slices.ContainsFunc(got, func(p []Place) bool { return slices.Equal(p, w) }) {
				t.Errorf("%s: %v is not among %v", file, w, got)
			}
		}
		for _, p := range got {
			if last := p[len(p)-1]; last.Func != "run" && last.Func != "parse_order" || last.Line > 18 {
				t.Errorf("%s: what the linker left out is there: %v", file, p)
			}
		}
	}
}

// TestLinesAgree compares with what debug/dwarf makes of the same tables.
func TestLinesAgree(t *testing.T) {
	for _, file := range modules {
		sections := customs(t, file)
		theirs, data := reference(t, sections)
		ours := Read(sections)
		if len(theirs) < 10 {
			t.Fatalf("%s: only %d lines", file, len(theirs))
		}
		for _, e := range theirs {
			r, ok := ours.lines.at(uint32(e.Address))
			if !ok || int(r.line) != e.Line { // of several rows at one address the last one counts
				continue
			}
			if got := ours.lines.fileName(r.file); filepath.Base(got) != filepath.Base(e.File.Name) {
				t.Errorf("%s at %d: file %q, want %q", file, e.Address, got, e.File.Name)
			}
		}
		if d := gocmp.Diff(lastLines(theirs), ourLines(ours)); d != "" {
			t.Errorf("%s: lines (-debug/dwarf +ours):\n%s", file, d)
		}
		compareInlined(t, file, data, ours)
	}
}

// reference reads the tables with debug/dwarf, without the code that was left out.
func reference(t *testing.T, customs []binary.Custom) ([]dwarf.LineEntry, *dwarf.Data) {
	t.Helper()
	s := map[string][]byte{}
	for _, c := range customs {
		s[c.Name] = c.Data
	}
	d, err := dwarf.New(s[".debug_abbrev"], nil, nil, s[".debug_info"], s[".debug_line"], nil, s[".debug_ranges"], s[".debug_str"])
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".debug_addr", ".debug_line_str", ".debug_str_offsets", ".debug_rnglists"} {
		if err := d.AddSection(name, s[name]); err != nil {
			t.Fatal(err)
		}
	}
	var out []dwarf.LineEntry
	for r := d.Reader(); ; {
		e, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e == nil {
			return out, d
		}
		if e.Tag != dwarf.TagCompileUnit {
			continue
		}
		lr, err := d.LineReader(e)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, sequences(t, lr)...)
	}
}

func sequences(t *testing.T, lr *dwarf.LineReader) []dwarf.LineEntry {
	t.Helper()
	var out, run []dwarf.LineEntry
	for {
		var e dwarf.LineEntry
		if err := lr.Next(&e); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		run = append(run, e)
		if e.EndSequence {
			if !isDead(run[0].Address) {
				out = append(out, run...)
			}
			run = nil
		}
	}
}

// lastLines are the lines by address, of those at one address the last, 0 for an end.
func lastLines(rows []dwarf.LineEntry) map[uint32]int {
	out := map[uint32]int{}
	for _, e := range rows {
		if !e.EndSequence {
			out[uint32(e.Address)] = e.Line
		} else if _, begins := out[uint32(e.Address)]; !begins {
			out[uint32(e.Address)] = 0
		}
	}
	return out
}

func ourLines(i *Info) map[uint32]int {
	out := map[uint32]int{}
	for _, r := range i.lines.rows {
		out[r.addr] = 0
		if best, ok := i.lines.at(r.addr); ok {
			out[r.addr] = int(best.line)
		}
	}
	return out
}

// compareInlined compares which entries lie where.
func compareInlined(t *testing.T, file string, d *dwarf.Data, ours *Info) {
	t.Helper()
	type run struct {
		lo, hi uint32
		what   dwarf.Offset
	}
	var want, got []run
	for r := d.Reader(); ; {
		e, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e == nil {
			break
		}
		what := e.Offset
		switch e.Tag {
		case dwarf.TagInlinedSubroutine:
			what = e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		case dwarf.TagSubprogram:
		default:
			continue
		}
		ranges, err := d.Ranges(e)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range ranges {
			if !isDead(r[0]) {
				want = append(want, run{uint32(r[0]), uint32(r[1]), what})
			}
		}
	}
	for _, f := range ours.calls.functions {
		got = append(got, run{f.lo, f.hi, f.entry})
	}
	for _, c := range ours.calls.calls {
		got = append(got, run{c.lo, c.hi, c.origin})
	}
	order := func(a, b run) int {
		return cmp.Or(cmp.Compare(a.lo, b.lo), cmp.Compare(a.hi, b.hi), cmp.Compare(a.what, b.what))
	}
	slices.SortFunc(want, order)
	slices.SortFunc(got, order)
	if len(want) < 3 || !slices.Equal(want, got) {
		t.Errorf("%s: functions and inlined calls: got %v, want %v", file, got, want)
	}
}

func TestNothingToSay(t *testing.T) {
	none := [][]binary.Custom{
		nil,
		{{Name: "name", Data: []byte("x")}},
		{{Name: sectionLine}},
		{{Name: sectionLine, Data: []byte{1, 2, 3}}},
		{{Name: ".debug_info", Data: []byte{1, 2, 3}}},
	}
	for n, c := range none {
		if got := Read(c).At(5); len(got) > 0 {
			t.Errorf("%d: %v", n, got)
		}
	}
	if Has(none[2]) || !Has(none[3]) {
		t.Error("an empty section counts, or another one does not")
	}
	i := Read(customs(t, modules[0]))
	for _, offset := range []uint32{0, 1, 1 << 20, 1<<32 - 1} {
		if got := i.At(offset); len(got) > 0 {
			t.Errorf("at %d: %v", offset, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	names := []string{sectionLine, ".debug_info", ".debug_abbrev", ".debug_str", ".debug_line_str", ".debug_ranges", ".debug_rnglists", ".debug_addr", ".debug_str_offsets"}
	for _, file := range modules[:3] {
		seed := make([][]byte, len(names))
		for _, c := range customs(f, file) {
			if at := slices.Index(names, c.Name); at >= 0 {
				seed[at] = c.Data
			}
		}
		f.Add(seed[0], seed[1], seed[2], seed[3], seed[4], seed[5], seed[6], seed[7], seed[8], uint32(5))
	}
	f.Fuzz(func(t *testing.T, line, info, abbrev, str, lineStr, ranges, lists, addr, offsets []byte, at uint32) {
		var c []binary.Custom
		for n, data := range [][]byte{line, info, abbrev, str, lineStr, ranges, lists, addr, offsets} {
			c = append(c, binary.Custom{Name: names[n], Data: data})
		}
		i := Read(c)
		if i == nil {
			return
		}
		asked := []uint32{at}
		for _, r := range i.lines.rows[:min(len(i.lines.rows), 20)] {
			asked = append(asked, r.addr)
		}
		for _, offset := range asked {
			got := i.At(offset)
			if len(got) > maxInline+1 {
				t.Errorf("%d places", len(got))
			}
			for _, p := range got {
				if len(p.File) > 10*maxShown || len(p.Func) > 10*maxShown || strings.ContainsAny(p.File+p.Func, "\n\x1b") || p.Line < 0 {
					t.Errorf("shown: %+v", p)
				}
			}
		}
	})
}
