package sandbox

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/sandbox/debuginfo"
)

// placeSections makes wazero write after each frame of a stack where in the code section it stands. It does so only for
// a module with line tables of its own reading, which is nothing to feed with what others wrote. So a module that has
// some is compiled with these instead, 150 bytes in three custom sections. They give all code from byte 1 on to line 1 of
// a file x; what wazero writes is then "\t0x<offset>: x:1". DWARF 4, 7.5 and 6.2.4.
var placeSections = customSection(".debug_abbrev", "\x01\x11\x00"+ // 1: a compile unit without children that has
	"\x11\x01"+"\x12\x06"+"\x10\x17"+ // a low address, a length in 4 bytes, the offset of its line table
	"\x00\x00\x00") +
	customSection(".debug_info", "\x14\x00\x00\x00"+"\x04\x00"+"\x00\x00\x00\x00"+"\x04"+ // 20 bytes, version 4, addresses of 4 bytes
		"\x01"+"\x01\x00\x00\x00"+"\xf0\xff\xff\x7f"+"\x00\x00\x00\x00") +
	customSection(".debug_line", "\x31\x00\x00\x00"+"\x04\x00"+"\x19\x00\x00\x00"+ // 49 bytes, version 4, 25 of header
		"\x01\x01\x01\xfb\x0e\x0d"+"\x00\x01\x01\x01\x01\x00\x00\x00\x01\x00\x00\x01"+"\x00"+"x\x00\x00\x00\x00"+"\x00"+
		"\x00\x05\x02\x01\x00\x00\x00"+"\x01"+"\x00\x05\x02\xf0\xff\xff\x7f"+"\x00\x01\x01")

// customSection is a short custom section in the binary format.
func customSection(name, body string) string {
	return "\x00" + string(rune(1+len(name)+len(body))) + string(rune(len(name))) + name + body
}

// withPlaces is a module's code as it is compiled: with placeSections when the module says which lines it was made from.
// The slower compile is for such modules alone.
func (m *module) withPlaces(wasm []byte) []byte {
	if !debuginfo.Has(m.form.Customs) {
		return wasm
	}
	return append(wasm, placeSections...)
}

// placeOf reads what wazero writes for a place.
func placeOf(line string) (offset uint32, ok bool) {
	hex, ok := strings.CutPrefix(line, "\t0x")
	if !ok {
		return 0, false
	}
	hex, _, _ = strings.Cut(hex, ":")
	n, err := strconv.ParseUint(hex, 16, 32)
	return uint32(n), err == nil
}

// frames are the lines of a stack for one function at an offset of the code: those that were inlined into it, and itself.
func (m *module) frames(name string, offset uint32) []string {
	places := m.lines().At(offset)
	if len(places) == 0 {
		return []string{name}
	}
	var frames []string
	for _, p := range places {
		who := p.Func
		if who == "" {
			who = name
		}
		frames = append(frames, who+where(p))
	}
	return frames
}

func where(p debuginfo.Place) string {
	switch {
	case p.File == "":
		return ""
	case p.Line == 0:
		return " (" + p.File + ")"
	}
	return fmt.Sprintf(" (%s:%d)", p.File, p.Line)
}

// maxWhere is how many functions Where names.
const maxWhere = 4

// Where says which functions the guest was in, innermost first, for messages and logs: those whose source lines are known,
// or else the first ones; "" when nothing is known. It must not reach anything that is compared or kept with a batch.
func (f *Failure) Where() string {
	// What a toolchain's own library did on the way to the trap says nothing to the author.
	hasLine := func(s string) bool {
		return strings.HasSuffix(s, ")") && strings.Contains(s, " (") && !strings.Contains(s, "/library/")
	}
	shown := f.Stack
	if slices.ContainsFunc(shown, hasLine) {
		shown = slices.DeleteFunc(slices.Clone(shown), func(s string) bool { return !hasLine(s) })
	}
	if len(shown) == 0 {
		return ""
	}
	return "in " + strings.Join(shown[:min(len(shown), maxWhere)], ", called by ")
}

// maxFrames is how many lines of a stack are kept: wazero writes 30, each of which may have inlined ones.
const maxFrames = 60

// frame is one function of a stack as wazero wrote it. Own functions are functions of the module; others only have a name.
type frame struct {
	text     string
	index    uint32
	own      bool
	offset   uint32
	hasPlace bool
}

// framesOf reads the stack that wazero appends to an error, innermost function first. It writes a function of a module
// without names as ".$<index>(<parameters>)".
func framesOf(text string) []frame {
	at := strings.LastIndex(text, traceMark)
	if at < 0 {
		return nil
	}
	list, _, _ := strings.Cut(text[at+len(traceMark):], "\n\n")
	var frames []frame
	for line := range strings.SplitSeq(list, "\n\t") {
		if offset, ok := placeOf(line); ok && len(frames) > 0 {
			last := &frames[len(frames)-1]
			last.offset, last.hasPlace = offset, true
			continue
		}
		text, _, _ := strings.Cut(line, "(")
		f := frame{text: abi.EscapeText([]byte(text), maxShown)}
		rest, own := strings.CutPrefix(line, ".$")
		digits, _, isCall := strings.Cut(rest, "(")
		index, err := strconv.ParseUint(digits, 10, 32)
		f.index, f.own = uint32(index), own && isCall && err == nil
		frames = append(frames, f)
	}
	return frames
}
