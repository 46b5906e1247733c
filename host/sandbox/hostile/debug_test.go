package hostile

import (
	"encoding/binary"

	"github.com/wasmill/wasmill/abi"
	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

// debugAttacks have debug data that nobody should believe. It is read when a guest traps, which may be for each record.
var debugAttacks = []attack{
	{id: "D1", name: "debug data that lies, and much of it", cpu: 4, rss: 600, long: true, onEach: true, each: some(debugBombs)},
	{id: "D2", name: "debug data that claims more than there is", cpu: 1, rss: 100, onEach: true, each: some(debugLies)},
}

// customs is a module that traps, with custom sections.
func customs(pairs ...string) []byte {
	m := batching("", w.Unreachable)
	for i := 0; i < len(pairs); i += 2 {
		m.after += section(w.Custom, w.Name(pairs[i])+pairs[i+1])
	}
	return m.bytes()
}

func le32(n uint32) string { return string(binary.LittleEndian.AppendUint32(nil, n)) }

func le16(n uint16) string { return string(binary.LittleEndian.AppendUint16(nil, n)) }

// lineTable is a line table of version 4 with a program.
func lineTable(program string) string {
	header := "\x01\x01\x01\xfb\x0e\x0d" + "\x00\x01\x01\x01\x01\x00\x00\x00\x01\x00\x00\x01" + "\x00" + "x\x00\x00\x00\x00" + "\x00"
	rest := le16(4) + le32(uint32(len(header))) + header + program
	return le32(uint32(len(rest))) + rest
}

// abbrev is a table of one entry, 1: a tag, with or without children, with attributes.
func abbrev(tag, children, attributes string) string {
	return "\x01" + tag + children + attributes + "\x00\x00" + "\x00"
}

// unit is a unit of version 4 with entries.
func unit(entries string) string {
	rest := le16(4) + le32(0) + "\x04" + entries
	return le32(uint32(len(rest))) + rest
}

const compileUnit = "\x11\x01" + "\x12\x06" + "\x10\x17" // low address, length, line table

func debugBombs() []variant {
	const most = 15 << 20
	ends := trapped(abi.TrapUnreachable)
	head := "\x01" + le32(1) + le32(0x7ffffff0) + le32(0)
	bomb := func(name string, sections ...string) variant {
		return variant{name: name, wasm: customs(sections...), lanes: 3, want: ends}
	}
	// Entries inside of each other without end; entries whose origin they are themselves.
	nested := repeat("\x01", most)
	origin := repeat("\x01"+le32(11), most/5)
	return []variant{
		bomb("15 million rows", ".debug_abbrev", abbrev("\x11", "\x00", compileUnit), ".debug_info", unit(head), ".debug_line", lineTable(repeat("\x20", most))),
		bomb("addresses that go round", ".debug_abbrev", abbrev("\x11", "\x00", compileUnit), ".debug_info", unit(head), ".debug_line", lineTable(repeat("\x08\x20", most/2))),
		bomb("a million sequences", ".debug_abbrev", abbrev("\x11", "\x00", compileUnit), ".debug_info", unit(head), ".debug_line", lineTable(repeat("\x20\x00\x01\x01", most/4))),
		bomb("entries inside of each other", ".debug_abbrev", abbrev("\x2e", "\x01", ""), ".debug_info", unit(nested), ".debug_line", lineTable("")),
		bomb("entries that are their own origin", ".debug_abbrev", abbrev("\x2e", "\x00", "\x31\x13"), ".debug_info", unit(origin), ".debug_line", lineTable("")),
		bomb("a million units", ".debug_abbrev", abbrev("\x11", "\x00", compileUnit), ".debug_info", repeat(unit(head), most/28), ".debug_line", lineTable("")),
		bomb("a million line tables", ".debug_line", repeat(lineTable(""), most/40)),
		bomb("nothing but zeros", ".debug_abbrev", repeat("\x00", most/2), ".debug_info", repeat("\x00", most/2), ".debug_line", ""),
		bomb("nothing but ones", ".debug_abbrev", repeat("\xff", most/3), ".debug_info", repeat("\xff", most/3), ".debug_line", repeat("\xff", most/3)),
	}
}

func debugLies() []variant {
	ends := trapped(abi.TrapUnreachable)
	lie := func(name string, sections ...string) variant {
		return variant{name: name, wasm: customs(sections...), want: ends}
	}
	good := []string{".debug_abbrev", abbrev("\x11", "\x00", compileUnit), ".debug_info", unit("\x01" + le32(1) + le32(0x7ffffff0) + le32(0)), ".debug_line", lineTable("\x00\x05\x02\x01\x00\x00\x00\x01\x00\x01\x01")}
	cut := func(name string, at, n int) variant {
		sections := append([]string(nil), good...)
		sections[at] = sections[at][:n]
		return lie(name, sections...)
	}
	all := []variant{
		lie("as it should be", good...),
		lie("a line table of 4 GiB", ".debug_line", le32(0xfffffff0-1)+repeat("\x00", 100)),
		lie("a line table of 2^63 bytes", ".debug_line", le32(0xffffffff)+repeat("\xff", 8)+repeat("\x00", 100)),
		lie("a unit of 4 GiB", good[0], good[1], ".debug_info", le32(0xffffffef)+le16(4), good[4], good[5]),
		lie("an offset of 4 GiB", good[0], good[1], ".debug_info", unit("\x01"+le32(1)+le32(1)+le32(0xffffffff)), good[4], good[5]),
		lie("a file name with terminal codes", good[0], good[1], good[2], good[3], ".debug_line", lineTable("")[:30]+"\x1b[31m\n"),
		lie("sections twice", append(good, good...)...),
		lie("a name of 1 MB", append(good, ".debug_str", repeat("x", 1<<20))...),
	}
	for i := 1; i < len(good); i += 2 {
		for n := range len(good[i]) {
			all = append(all, cut(good[i-1], i, n))
		}
	}
	return all
}
