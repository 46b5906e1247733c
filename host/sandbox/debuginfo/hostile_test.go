package debuginfo

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"strings"
	"testing"

	sections "github.com/wasmill/wasmill/host/sandbox/binary"
)

func le32(n int) string { return string(binary.LittleEndian.AppendUint32(nil, uint32(n))) }

// infoUnit is a unit of DWARF 4 that is a compile unit, abbreviation 1, with entries behind it.
func infoUnit(abbrev int, entries string) string {
	body := "\x04\x00" + le32(abbrev) + "\x04" + "\x01" + entries + "\x00"
	return le32(len(body)) + body
}

// oldTable is a line table of DWARF 4 with directories and files, each ended by a zero byte.
func oldTable(dirs, files, program string) string {
	head := "\x01\x01\x01\xfb\x0e\x0d" + "\x00\x01\x01\x01\x01\x00\x00\x00\x01\x00\x00\x01" + dirs + "\x00" + files + "\x00"
	body := "\x04\x00" + le32(len(head)) + head + program
	return le32(len(body)) + body
}

// sequence is a line program: an address and lines, each one byte on.
func sequence(addr, lines int) string {
	return "\x00\x05\x02" + le32(addr) + strings.Repeat("\x21", lines) + "\x02\x01\x00\x01\x01"
}

const (
	unitAbbrev   = "\x01\x11\x01\x00\x00"         // 1: a compile unit with children
	rangesAbbrev = "\x02\x2e\x00\x55\x17\x00\x00" // 2: a function with ranges
	namedAbbrev  = "\x02\x2e\x00\x03\x0e\x00\x00" // 2: a function with a name in .debug_str
	// A table of DWARF 5 with 2,097,151 folders of no form, and no files.
	emptyFolders = "\x14\x00\x00\x00" + "\x05\x00\x04\x00\x0c\x00\x00\x00" + "\x01\x01\x01\xfb\x0e\x01" + "\x00\xff\xff\x7f" + "\x00\x00"
	inlineAbbrev = "\x03\x1d\x00\x31\x13\x55\x17\x00\x00" // 3: an inlined call of a function, with ranges
)

// TestWorkIsBounded reads what is made to cost as much as possible for its size. Without its bound each case would take
// minutes or gigabytes.
func TestWorkIsBounded(t *testing.T) {
	const entries = 500_000
	line := oldTable("", "a.c\x00\x00\x00\x00", sequence(100, 10))
	pairs := strings.Repeat(le32(5)+le32(6), 1_000_000)
	bases := strings.Repeat(le32(-1)+le32(7), 1_000_000)
	wide := "\x02\x2e\x00" + strings.Repeat("\x03\x0e", 10_000) + "\x00\x00"
	tests := []struct {
		name     string
		sections map[string]string
	}{
		{"one list of ranges for all", map[string]string{
			sectionLine: line, ".debug_abbrev": unitAbbrev + rangesAbbrev + "\x00", ".debug_ranges": pairs,
			".debug_info": infoUnit(0, strings.Repeat("\x02"+le32(0), entries)),
		}},
		{"one list of no ranges for all", map[string]string{
			sectionLine: line, ".debug_abbrev": unitAbbrev + rangesAbbrev + "\x00", ".debug_ranges": bases,
			".debug_info": infoUnit(0, strings.Repeat("\x02"+le32(0), entries)),
		}},
		{"inlined everywhere", map[string]string{
			sectionLine: line, ".debug_abbrev": unitAbbrev + rangesAbbrev + inlineAbbrev + "\x00", ".debug_ranges": pairs,
			".debug_info": infoUnit(0, "\x02"+le32(0)+strings.Repeat("\x03"+le32(12)+le32(0), entries)),
		}},
		{"one long name for all", map[string]string{
			sectionLine: line, ".debug_abbrev": unitAbbrev + namedAbbrev + "\x00", ".debug_str": strings.Repeat("x", maxString-1) + "\x00",
			".debug_info": infoUnit(0, strings.Repeat("\x02"+le32(0), entries)),
		}},
		{"a name of the whole section", map[string]string{
			sectionLine: line, ".debug_abbrev": unitAbbrev + namedAbbrev + "\x00", ".debug_str": strings.Repeat("x", 8<<20),
			".debug_info": infoUnit(0, strings.Repeat("\x02"+le32(0), entries)),
		}},
		{"entries of many attributes", map[string]string{
			sectionLine: line, ".debug_abbrev": unitAbbrev + wide + "\x00", ".debug_str": strings.Repeat("x", maxString-1) + "\x00",
			".debug_info": infoUnit(0, strings.Repeat("\x02"+strings.Repeat(le32(0), 10_000), 200)),
		}},
		{"a table of abbreviations for each unit", map[string]string{
			sectionLine: line, ".debug_abbrev": strings.Repeat(namedAbbrev, 1_000_000) + "\x00",
			".debug_info": func() string {
				var b strings.Builder
				for i := range 15_000 {
					b.WriteString(infoUnit(7*i, ""))
				}
				return b.String()
			}(),
		}},
		{"more units than anybody has", map[string]string{
			sectionLine: line, ".debug_abbrev": unitAbbrev + "\x00", ".debug_info": strings.Repeat(infoUnit(0, ""), 500_000),
		}},
		{"files in a long folder", map[string]string{
			sectionLine: oldTable(strings.Repeat("d", 4<<20)+"\x00", strings.Repeat("a\x00\x01\x00\x00", 1_000_000), sequence(100, 10)),
		}},
		{"more lines than are kept", map[string]string{sectionLine: oldTable("", "a\x00\x00\x00\x00", sequence(100, 8<<20))}},
		{"sequences without end", map[string]string{
			sectionLine: oldTable("", "a\x00\x00\x00\x00", strings.Repeat("\x00\x05\x02"+le32(9)+"\x21", 1<<20)),
		}},
		{"folders that take no bytes", map[string]string{sectionLine: strings.Repeat(emptyFolders, 500_000)}},
		{"calls that are nowhere, after many functions", map[string]string{
			sectionLine: line, ".debug_abbrev": unitAbbrev + "\x02\x2e\x00\x11\x01\x12\x06\x00\x00" + "\x03\x1d\x00\x31\x11\x00\x00" + "\x00",
			".debug_info": func() string {
				var b strings.Builder
				for i := range maxFunctions - 10 {
					b.WriteString("\x02" + le32(8*i+1) + le32(8))
				}
				return infoUnit(0, b.String()+strings.Repeat("\x03\x01", 3_000_000))
			}(),
		}},
		{"many tables", map[string]string{sectionLine: strings.Repeat(oldTable("", "a\x00\x00\x00\x00", sequence(100, 1)), 150_000)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var customs []sections.Custom
			for name, data := range tt.sections {
				customs = append(customs, sections.Custom{Name: name, Data: []byte(data)})
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			i := Read(customs)
			for offset := range uint32(30) {
				if got := i.At(98 + offset); len(got) > maxInline+1 {
					t.Errorf("%d places", len(got))
				}
			}
			runtime.ReadMemStats(&after)
			if spent := after.TotalAlloc - before.TotalAlloc; spent > 512<<20 {
				t.Errorf("it took %d MB in all", spent>>20)
			}
			if len(i.lines.rows) > maxRows || len(i.lines.files) > maxFiles {
				t.Errorf("%d rows, %d files", len(i.lines.rows), len(i.lines.files))
			}
		})
	}
}

// TestTextsAreShownSafely has names that would write to a terminal.
func TestTextsAreShownSafely(t *testing.T) {
	long := strings.Repeat("é", maxShown)
	i := Read([]sections.Custom{{Name: sectionLine, Data: []byte(oldTable("d\x1b[31m\x00", "a\n\x00\x01\x00\x00"+long+"\x00\x00\x00\x00", sequence(100, 1)+"\x04\x02"+sequence(200, 1)))}})
	got := i.At(101)
	if len(got) != 1 || got[0].File != `d\u{1b}[31m/a\n` {
		t.Errorf("got %+v", got)
	}
	if name := i.lines.fileName(1); len(name) > maxShown+8 || !strings.HasPrefix(long, strings.TrimRight(name, "…. ")) {
		t.Errorf("a long name is shown as %q", name)
	}
	if bytes.ContainsRune([]byte(i.lines.fileName(7)), 'd') {
		t.Error("a file that is not there has a name")
	}
}
