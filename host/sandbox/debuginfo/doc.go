// Package debuginfo says which line of source code an instruction of a module comes from, for the messages of traps. It
// reads the DWARF that compilers put in a module's custom sections (DWARF 2 to 5; addresses are offsets in the content of
// the code section, as https://yurydelendik.github.io/webassembly-dwarf/ has them): all of .debug_line itself, and of
// .debug_info, through debug/dwarf, which functions were inlined where.
//
// The sections are somebody else's: whatever they hold, work and memory are bounded, and what is broken is left out. What
// this package says is for people. It must not reach anything that is compared or digested.
package debuginfo

import (
	"cmp"
	"path"
	"slices"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/sandbox/binary"
)

// Bounds of what is kept and shown.
const (
	maxRows      = 1 << 20 // of line tables
	maxFiles     = 1 << 17
	maxFunctions = 1 << 17
	maxCalls     = 1 << 19
	maxShown     = 120 // bytes of a name
	maxInline    = 16  // inlined calls at one place
)

// Place is a place in source code. The texts are escaped and cut.
type Place struct {
	// Func is the function that the place lies in, as the source calls it, "" when that is not known.
	Func string
	File string
	Line int // 0 when it is not known
}

// Info is what a module's sections say. A nil Info knows nothing.
type Info struct {
	lines *lines
	calls *calls
}

// Has says whether a module has line tables.
func Has(customs []binary.Custom) bool {
	return slices.ContainsFunc(customs, func(c binary.Custom) bool { return c.Name == sectionLine && len(c.Data) > 0 })
}

// Read reads a module's sections. It takes up to about a second for the largest, so it is for when a place is wanted.
func Read(customs []binary.Custom) *Info {
	if !Has(customs) {
		return nil
	}
	sections := map[string][]byte{}
	for _, c := range customs {
		if _, twice := sections[c.Name]; !twice {
			sections[c.Name] = c.Data
		}
	}
	lines := readLines(sections)
	return &Info{lines: lines, calls: readCalls(sections, lines)}
}

// At returns where the instruction with that offset in the code section comes from: the innermost inlined function
// first, the function itself last. Empty when nothing is known.
func (i *Info) At(offset uint32) []Place {
	if i == nil {
		return nil
	}
	row, ok := i.lines.at(offset)
	if !ok {
		return nil
	}
	file, line := row.file, row.line
	var places []Place
	name, inlined := i.calls.at(offset)
	for _, c := range slices.Backward(inlined[:min(len(inlined), maxInline)]) {
		places = append(places, Place{Func: i.calls.name(c.origin), File: i.lines.fileName(file), Line: int(line)})
		file, line = c.file, c.line
	}
	return append(places, Place{Func: name, File: i.lines.fileName(file), Line: int(line)})
}

// shown makes a text fit for a message.
func shown(b []byte) string { return abi.EscapeText(b, maxShown) }

// row is the start of a run of code that comes from one line.
type row struct {
	addr, line uint32
	file       int32 // index of lines.files, noFile: unknown, runEnd: the run before ends here
}

const (
	noFile = -1
	runEnd = -2
)

// text is a string of a section: it begins with b and ends at a zero byte.
type text []byte

// cut is the string, at most what is worth to be shown.
func (t text) cut() []byte {
	t = t[:min(len(t), maxShown+1)]
	if end := slices.Index(t, 0); end >= 0 {
		return t[:end]
	}
	return t
}

// file is the name of a source file.
type file struct{ dir, name text }

// lines are the line tables of a module: rows in the order of their addresses, of which the ends come first.
type lines struct {
	rows  []row
	files []file
	units map[uint32]unitFiles
}

// unitFiles are the files of the table at an offset of .debug_line: number first is files[base], n of them.
type unitFiles struct{ base, first, n int }

func (l *lines) at(offset uint32) (row, bool) {
	i, _ := slices.BinarySearchFunc(l.rows, offset, func(r row, offset uint32) int {
		if r.addr <= offset {
			return -1
		}
		return 1
	})
	if i == 0 || l.rows[i-1].file == runEnd {
		return row{}, false
	}
	return l.rows[i-1], true
}

func (l *lines) fileName(index int32) string {
	if index < 0 || int(index) >= len(l.files) {
		return ""
	}
	f := l.files[index]
	name := f.name.cut()
	if dir := f.dir.cut(); len(dir) > 0 && !path.IsAbs(string(name)) {
		return shown([]byte(path.Join(string(dir), string(name))))
	}
	return shown(name)
}

// number is the index of the file with a number of the table at an offset.
func (l *lines) number(table uint32, number uint64) int32 {
	u, ok := l.units[table]
	if at := number - uint64(u.first); ok && at < uint64(u.n) {
		return int32(u.base) + int32(at)
	}
	return noFile
}

func (l *lines) sort() {
	slices.SortStableFunc(l.rows, func(a, b row) int {
		if c := cmp.Compare(a.addr, b.addr); c != 0 || a.file == b.file {
			return c
		}
		switch {
		case a.file == runEnd:
			return -1
		case b.file == runEnd:
			return 1
		}
		return 0
	})
}
