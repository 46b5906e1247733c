package debuginfo

const sectionLine = ".debug_line"

// Forms of the entries in the header of a table of DWARF 5 (7.5.6).
const (
	formBlock   = 0x09
	formData1   = 0x0b
	formData2   = 0x05
	formData4   = 0x06
	formData8   = 0x07
	formData16  = 0x1e
	formString  = 0x08
	formStrp    = 0x0e
	formUdata   = 0x0f
	formLineStr = 0x1f
)

// Content types of these entries.
const (
	contentPath = 1
	contentDir  = 2
)

// Instructions of line programs: standard ones, and extended ones behind opExtended (6.2.5).
const (
	opExtended = iota
	opCopy
	opAdvancePC
	opAdvanceLine
	opSetFile
	opSetColumn
	opNegateStmt
	opSetBlock
	opConstAddPC
	opFixedAdvancePC

	extEnd     = 1
	extAddress = 2
	extFile    = 3
)

// isDead says whether an address is one that linkers give to code they left out.
func isDead(addr uint64) bool { return addr == 0 || addr >= 0xfffffffe }

// readLines reads all tables of .debug_line, each once, so that the work is linear in the section.
func readLines(sections map[string][]byte) *lines {
	l := &lines{units: map[uint32]unitFiles{}}
	section := sections[sectionLine]
	all := &cursor{b: section}
	for len(all.b) > 0 && len(l.rows) < maxRows && len(l.files) < maxFiles {
		at := uint32(len(section) - len(all.b))
		unit := all.unit()
		if unit.bad {
			break
		}
		p := &program{lines: l, sections: sections, c: unit}
		if p.header(at) {
			p.run()
		}
	}
	l.sort()
	return l
}

// program is one line program (6.2).
type program struct {
	lines    *lines
	sections map[string][]byte
	c        *cursor

	version    uint16
	files      unitFiles
	dirs       []text
	minInst    uint64
	lineBase   int64
	lineRange  int64
	opcodeBase byte
	operands   []byte

	addr  uint64
	file  uint64
	line  int64
	start int // of the sequence's rows
	began uint64
}

// header reads all that stands before the instructions; false when it makes no sense.
func (p *program) header(at uint32) bool {
	c := p.c
	p.version = c.u16()
	if p.version < 2 || p.version > 5 {
		return false
	}
	if p.version == 5 {
		c.take(2) // sizes of addresses and of segment selectors
	}
	n := c.u32()
	head := &cursor{b: c.take(uint64(n)), bad: c.bad}
	p.minInst = uint64(head.u8())
	if p.version >= 4 {
		head.u8() // instructions that one word holds
	}
	head.u8()
	p.lineBase, p.lineRange = int64(int8(head.u8())), int64(head.u8())
	p.opcodeBase = head.u8()
	if head.bad || p.lineRange == 0 || p.opcodeBase == 0 {
		return false
	}
	p.operands = head.take(uint64(p.opcodeBase - 1))
	p.files = unitFiles{base: len(p.lines.files), first: 1}
	if p.version == 5 {
		p.files.first = 0
		p.entries(head, func(path text, _ uint64) { p.dirs = append(p.dirs, path) })
		p.entries(head, func(path text, dir uint64) { p.addFile(path, dir) })
	} else {
		p.oldHeader(head)
	}
	p.lines.units[at] = p.files
	return !head.bad
}

// oldHeader reads the directories, of which number 0 is not said, and the files of DWARF 2 to 4.
func (p *program) oldHeader(c *cursor) {
	p.dirs = []text{nil}
	for len(p.dirs) < maxFiles {
		s := c.str()
		if len(s) == 0 {
			break
		}
		p.dirs = append(p.dirs, s)
	}
	for !c.bad {
		name := c.str()
		if len(name) == 0 {
			return
		}
		dir := c.uleb()
		c.uleb()
		c.uleb()
		p.addFile(name, dir)
	}
}

func (p *program) addFile(name text, dir uint64) {
	if len(p.lines.files) >= maxFiles {
		return
	}
	f := file{name: name}
	if dir < uint64(len(p.dirs)) {
		f.dir = p.dirs[dir]
	}
	p.lines.files = append(p.lines.files, f)
	p.files.n++
}

// entries reads a list of directories or files of DWARF 5.
func (p *program) entries(c *cursor, add func(path text, dir uint64)) {
	type format struct{ content, form uint64 }
	var formats []format
	for n := c.u8(); n > 0 && !c.bad; n-- {
		formats = append(formats, format{c.uleb(), c.uleb()})
	}
	if len(formats) == 0 {
		return // any number of entries of nothing takes no bytes
	}
	for n := min(c.uleb(), maxFiles); n > 0 && !c.bad; n-- {
		var path text
		var dir uint64
		for _, f := range formats {
			s, v := p.value(c, f.form)
			switch f.content {
			case contentPath:
				path = s
			case contentDir:
				dir = v
			}
		}
		add(path, dir)
	}
}

// value reads one value of an entry.
func (p *program) value(c *cursor, form uint64) (text, uint64) {
	switch form {
	case formString:
		return c.str(), 0
	case formLineStr:
		return at(p.sections[".debug_line_str"], uint64(c.u32())).b, 0
	case formStrp:
		return at(p.sections[".debug_str"], uint64(c.u32())).b, 0
	case formUdata:
		return nil, c.uleb()
	case formData1:
		return nil, uint64(c.u8())
	case formData2:
		return nil, uint64(c.u16())
	case formData4:
		return nil, uint64(c.u32())
	case formData8:
		c.take(8)
	case formData16:
		c.take(16)
	case formBlock:
		c.take(c.uleb())
	default:
		c.take(uint64(len(c.b)) + 1)
	}
	return nil, 0
}

// run runs the program and keeps the rows of its sequences that lie in the code.
func (p *program) run() {
	p.reset()
	for len(p.c.b) > 0 && len(p.lines.rows) < maxRows {
		op := p.c.u8()
		if op >= p.opcodeBase {
			p.special(op)
			continue
		}
		switch op {
		case opExtended:
			p.extended()
		case opCopy:
			p.emit()
		case opAdvancePC:
			p.addr += p.c.uleb() * p.minInst
		case opAdvanceLine:
			p.line += p.c.sleb()
		case opSetFile:
			p.file = p.c.uleb()
		case opConstAddPC:
			p.addr += uint64(int64(255-p.opcodeBase)/p.lineRange) * p.minInst
		case opFixedAdvancePC:
			p.addr += uint64(p.c.u16())
		default:
			for range p.operands[op-1] {
				p.c.uleb()
			}
		}
	}
	p.lines.rows = p.lines.rows[:p.start] // a sequence without an end
}

func (p *program) reset() {
	p.addr, p.file, p.line = 0, 1, 1
	p.start, p.began = len(p.lines.rows), 0
}

func (p *program) special(op byte) {
	step := int64(op - p.opcodeBase)
	p.addr += uint64(step/p.lineRange) * p.minInst
	p.line += p.lineBase + step%p.lineRange
	p.emit()
}

func (p *program) extended() {
	n := p.c.uleb()
	args := &cursor{b: p.c.take(n)}
	switch args.u8() {
	case extEnd:
		p.end()
	case extAddress:
		p.addr = uint64(args.u32())
	case extFile:
		name := args.str()
		p.addFile(name, args.uleb())
	}
}

func (p *program) emit() {
	if len(p.lines.rows) == p.start {
		p.began = p.addr
	}
	line := p.line
	if line < 0 || line > 1<<30 {
		line = 0
	}
	p.lines.rows = append(p.lines.rows, row{addr: uint32(p.addr), line: uint32(line), file: p.number()})
}

// number is the index of the current file. A file that is defined later in the program has none yet.
func (p *program) number() int32 {
	if at := p.file - uint64(p.files.first); at < uint64(p.files.n) {
		return int32(p.files.base) + int32(at)
	}
	return noFile
}

// end ends a sequence, and forgets it when it is of code that was left out.
func (p *program) end() {
	if len(p.lines.rows) > p.start && !isDead(p.began) {
		p.lines.rows = append(p.lines.rows, row{addr: uint32(p.addr), file: runEnd})
	} else {
		p.lines.rows = p.lines.rows[:p.start]
	}
	p.reset()
}
