package debuginfo

import (
	"cmp"
	"debug/dwarf"
	"slices"
	"sync"
)

// budget is what reading .debug_info may cost: bytes and attributes read, and steps along range lists.
const budget = 32 << 20

// Bounds on what makes debug/dwarf work more than linearly: it copies strings, and parses a table of abbreviations for
// each offset that a unit names.
const (
	maxUnits   = 20_000
	maxString  = 64 << 10
	maxAttrs   = 256 // of one entry
	unitHeader = 4   // of a unit's length
)

// call is one inlined call: code at [lo, hi) belongs to the function at origin, which was called in that line.
type call struct {
	lo, hi uint32
	origin dwarf.Offset
	line   uint32
	file   int32
}

// function is the code of one function; calls[first:last] were inlined into it, each before those inside of it.
type function struct {
	lo, hi      uint32
	first, last int
	entry       dwarf.Offset
}

// calls are the inlined calls of a module. It is safe for concurrent use.
type calls struct {
	data      *dwarf.Data
	functions []function
	calls     []call

	mu    sync.Mutex
	names map[dwarf.Offset]string
	left  int // of the budget, for names
}

// readCalls reads .debug_info as far as the budget goes; nil when that is hopeless.
func readCalls(sections map[string][]byte, l *lines) (c *calls) {
	// debug/dwarf has panicked on broken input before.
	defer func() {
		if recover() != nil {
			c = nil
		}
	}()
	w := &walk{sections: sections, lines: l, left: budget}
	units, ok := w.units()
	if !ok {
		return nil
	}
	data, err := dwarf.New(sections[".debug_abbrev"], nil, nil, sections[".debug_info"], nil, nil, nil, sections[".debug_str"])
	if err != nil {
		return nil
	}
	for _, name := range []string{".debug_addr", ".debug_line_str", ".debug_str_offsets", ".debug_rnglists"} {
		if err := data.AddSection(name, sections[name]); err != nil {
			return nil
		}
	}
	w.out = &calls{data: data, names: map[dwarf.Offset]string{}, left: budget}
	for _, u := range units {
		if w.full() {
			break
		}
		w.unit(u)
	}
	slices.SortFunc(w.out.functions, func(a, b function) int { return cmp.Compare(a.lo, b.lo) })
	return w.out
}

// at returns the name of the function that an offset lies in, and the inlined calls, the outermost first.
func (c *calls) at(offset uint32) (string, []call) {
	if c == nil {
		return "", nil
	}
	i, found := slices.BinarySearchFunc(c.functions, offset, func(f function, offset uint32) int { return cmp.Compare(f.lo, offset) })
	if !found {
		i--
	}
	if i < 0 || offset >= c.functions[i].hi {
		return "", nil
	}
	var in []call
	for _, one := range c.calls[c.functions[i].first:c.functions[i].last] {
		if one.lo <= offset && offset < one.hi {
			in = append(in, one)
		}
	}
	return c.name(c.functions[i].entry), in
}

// name is the name of a function, "" when there is none.
func (c *calls) name(at dwarf.Offset) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	name, ok := c.names[at]
	if !ok && c.left > 0 {
		name = c.readName(at)
		c.names[at] = name
	}
	return name
}

// readName follows a function that only refers to another one.
func (c *calls) readName(at dwarf.Offset) (name string) {
	defer func() {
		if recover() != nil {
			name = ""
		}
	}()
	r := c.data.Reader()
	for range 4 {
		r.Seek(at)
		e, err := r.Next()
		if err != nil || e == nil {
			break
		}
		c.left -= cost(e)
		if name, ok := e.Val(dwarf.AttrName).(string); ok && name != "" {
			return shown([]byte(name))
		}
		next, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		if !ok {
			next, ok = e.Val(dwarf.AttrSpecification).(dwarf.Offset)
		}
		if !ok {
			break
		}
		at = next
	}
	return ""
}

// cost is what reading an entry costs besides its bytes.
func cost(e *dwarf.Entry) int {
	sum := len(e.Field) + 1
	for i := range e.Field {
		if s, ok := e.Field[i].Val.(string); ok {
			sum += len(s)
		}
	}
	return sum
}

// unit is one unit of .debug_info.
type unit struct {
	root, end dwarf.Offset
	version   uint16
}

// walk reads .debug_info.
type walk struct {
	sections map[string][]byte
	lines    *lines
	out      *calls
	left     int

	// Of the unit that is being read:
	version  uint16
	table    uint32 // its line table
	base     uint64
	addrBase uint64
	live     bool // the latest function has code
	first    int  // of its parts in out.functions
	last     dwarf.Offset
}

// units reads the headers of all units and makes sure that debug/dwarf can be let loose on them.
func (w *walk) units() ([]unit, bool) {
	for _, name := range []string{".debug_str", ".debug_line_str"} {
		if !shortStrings(w.sections[name]) {
			return nil, false
		}
	}
	info := w.sections[".debug_info"]
	tables := map[uint32]bool{}
	var units []unit
	for all := (&cursor{b: info}); len(all.b) > 0; {
		start := len(info) - len(all.b)
		c := all.unit()
		size := len(c.b)
		u := unit{version: c.u16(), end: dwarf.Offset(start + unitHeader + size)}
		kind := byte(1)
		var table uint32
		if u.version >= 5 {
			kind = c.u8()
			c.u8()
			table = c.u32()
		} else {
			table = c.u32()
			c.u8()
		}
		u.root = u.end - dwarf.Offset(len(c.b))
		if c.bad || len(units) == maxUnits {
			return nil, false
		}
		if !tables[table] {
			tables[table] = true
			if !w.abbreviations(table) {
				return nil, false
			}
		}
		if kind == 1 {
			units = append(units, u)
		}
	}
	return units, true
}

// abbreviations walks over a table of abbreviations (7.5.3) and charges for it.
func (w *walk) abbreviations(offset uint32) bool {
	c := at(w.sections[".debug_abbrev"], uint64(offset))
	size := len(c.b)
	for c.uleb() != 0 {
		c.uleb()
		c.u8()
		for n := 0; ; n++ {
			name, form := c.uleb(), c.uleb()
			const implicitConst = 0x21
			if form == implicitConst {
				c.sleb()
			}
			if name == 0 && form == 0 {
				break
			}
			if n == maxAttrs {
				return false
			}
		}
	}
	w.left -= size - len(c.b)
	return !c.bad && w.left > 0
}

// shortStrings says whether no string of a section is longer than maxString.
func shortStrings(section []byte) bool {
	run := 0
	for _, b := range section {
		if run++; b == 0 {
			run = 0
		}
		if run > maxString {
			return false
		}
	}
	return true
}

// unit reads one unit.
func (w *walk) unit(u unit) {
	r := w.out.data.Reader()
	r.Seek(u.root)
	w.last = u.root
	root := w.next(r)
	if root == nil || root.Tag != dwarf.TagCompileUnit || !root.Children {
		return
	}
	w.version, w.table, w.base, w.addrBase, w.live = u.version, noTable, 0, 0, false
	if table, ok := root.Val(dwarf.AttrStmtList).(int64); ok {
		w.table = uint32(table)
	}
	if low, ok := root.Val(dwarf.AttrLowpc).(uint64); ok {
		w.base = low
	}
	if base, ok := root.Val(dwarf.AttrAddrBase).(int64); ok {
		w.addrBase = uint64(base)
	}
	for {
		e := w.next(r)
		if e == nil || e.Offset >= u.end || w.full() {
			return
		}
		switch e.Tag {
		case dwarf.TagSubprogram:
			w.function(e)
		case dwarf.TagInlinedSubroutine:
			w.inlined(e)
		}
	}
}

func (w *walk) full() bool {
	return w.left <= 0 || len(w.out.calls) >= maxCalls || len(w.out.functions) >= maxFunctions
}

// noTable is the offset of no line table.
const noTable = 1<<32 - 1

// next reads the next entry and charges for it; nil at the end, on broken input, and when the budget is spent.
func (w *walk) next(r *dwarf.Reader) *dwarf.Entry {
	if w.left <= 0 {
		return nil
	}
	e, err := r.Next()
	if err != nil || e == nil {
		return nil
	}
	w.left -= cost(e)
	if e.Tag != 0 { // the mark behind the last child has no offset
		w.left -= int(e.Offset) - int(w.last)
		w.last = e.Offset
	}
	return e
}

// function notes a function that has code. The inlined calls that follow are in it.
func (w *walk) function(e *dwarf.Entry) {
	at := len(w.out.calls)
	ranges := w.ranges(e)
	w.live, w.first = len(ranges) > 0, len(w.out.functions)
	for _, r := range ranges {
		w.out.functions = append(w.out.functions, function{lo: r.lo, hi: r.hi, first: at, last: at, entry: e.Offset})
	}
}

// inlined notes an inlined call in the latest function.
func (w *walk) inlined(e *dwarf.Entry) {
	origin, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
	if !ok || !w.live {
		return
	}
	c := call{origin: origin, file: noFile}
	if line, ok := e.Val(dwarf.AttrCallLine).(int64); ok && line > 0 && line <= 1<<30 {
		c.line = uint32(line)
	}
	if file, ok := e.Val(dwarf.AttrCallFile).(int64); ok {
		c.file = w.lines.number(w.table, uint64(file))
	}
	for _, r := range w.ranges(e) {
		c.lo, c.hi = r.lo, r.hi
		w.out.calls = append(w.out.calls, c)
	}
	parts := w.out.functions[w.first:]
	w.left -= len(parts)
	for i := range parts {
		parts[i].last = len(w.out.calls)
	}
}
