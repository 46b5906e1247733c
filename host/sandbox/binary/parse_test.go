package binary

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

// rich has every section there is.
func rich() []byte {
	m := w.Transform(w.Const(0), w.Echo())
	m.MaxPages, m.Table, m.Elements, m.Data = 9, 8, 3, "hello"
	m.Funcs = append(m.Funcs, w.Func{Locals: "\x7f\x7e\x7c", Code: "\x01"})
	m.Start = 5
	m.Globals = []string{"\x7f\x01" + w.Const(-7) + "\x0b", "\x7e\x00\x42\x7f\x0b", "\x7c\x01\x44\x00\x00\x00\x00\x00\x00\x00\x00\x0b", "\x70\x00\xd0\x70\x0b"}
	m.Customs = [][2]string{{"name", "\x01" + w.Name(w.Vec(w.U32(2)+w.Name("alloc"), w.U32(5)+w.Name("starter")))}, {"wasmill", "{}"}}
	return m.Bytes()
}

func TestParse(t *testing.T) {
	m, err := Parse(rich())
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Imports) != 2 || m.Imports[1] != (Import{Module: "wasmill_1", Name: "log", Type: 1}) {
		t.Errorf("imports %+v", m.Imports)
	}
	if len(m.Memories) != 1 || m.Memories[0] != (Limits{Min: 8, Max: 9, HasMax: true}) {
		t.Errorf("memories %+v", m.Memories)
	}
	want := []Global{{I32, true}, {I64, false}, {F64, true}, {FuncRef, false}}
	if d := cmp.Diff(want, m.Globals); d != "" {
		t.Error(d)
	}
	if !m.HasStart || m.Start != 5 {
		t.Errorf("start %v %d", m.HasStart, m.Start)
	}
	if d := cmp.Diff(map[uint32]string{2: "alloc", 5: "starter"}, m.FuncNames()); d != "" {
		t.Error(d)
	}
	if f, ok := m.FuncType(2); !ok || f.String() != "(i32) -> (i32)" {
		t.Errorf("type of function 2: %v %v", f, ok)
	}
	if f, ok := m.FuncType(0); !ok || f.String() != "(i32, i32, i32) -> ()" {
		t.Errorf("type of function 0: %v %v", f, ok)
	}
	if _, ok := m.FuncType(6); ok {
		t.Error("function 6 of 6 has a type")
	}
}

func TestStripLeavesTheRest(t *testing.T) {
	m, err := Parse(rich())
	if err != nil {
		t.Fatal(err)
	}
	stripped, err := Parse(m.Strip())
	if err != nil {
		t.Fatal(err)
	}
	if len(stripped.Customs) != 0 || len(m.Customs) != 2 {
		t.Errorf("%d custom sections of %d are left", len(stripped.Customs), len(m.Customs))
	}
	if !bytes.HasPrefix(m.raw, stripped.raw) {
		t.Error("more was changed than the custom sections at the end")
	}
	if d := cmp.Diff(m.Exports, stripped.Exports); d != "" {
		t.Error(d)
	}
}

// one is a module of one section.
func one(id byte, body string) []byte { return []byte(w.Header + w.Section(id, body)) }

func TestRefused(t *testing.T) {
	types := w.Section(w.Type, w.Vec(w.FuncType("", "")))
	memory := w.Section(w.Memory, w.Vec("\x00\x01"))
	table := w.Section(w.Table, w.Vec("\x70\x00\x02"))
	const most = "\xff\xff\xff\xff\x0f"
	tests := []struct {
		name   string
		module []byte
		reason Reason
		text   string
	}{
		{"empty", nil, NotWasm, "empty"},
		{"text", []byte("hello\n"), NotWasm, "text file"},
		{"html", []byte("<!doctype html>"), NotWasm, "text file"},
		{"wat", []byte("\n  (module (memory 1))"), NotWasm, "wat2wasm"},
		{"gzip", []byte("\x1f\x8b\x08\x00"), NotWasm, "gzip"},
		{"zstd", []byte("\x28\xb5\x2f\xfd\x00"), NotWasm, "zstd"},
		{"elf", []byte("\x7fELF\x02\x01\x01\x00"), NotWasm, "native program"},
		{"archive", []byte("!<arch>\n"), NotWasm, "static library"},
		{"zip", []byte("PK\x03\x04\x00"), NotWasm, "zip"},
		{"other bytes", []byte{1, 2, 3, 4}, NotWasm, `\0asm`},
		{"magic only", []byte("\x00asm"), Malformed, "cut off"},
		{"component", []byte("\x00asm\x0d\x00\x01\x00"), Component, "component"},
		{"version 2", []byte("\x00asm\x02\x00\x00\x00"), Malformed, "02 00 00 00"},
		{"cut section", []byte(w.Header + "\x01\x05\x01"), Malformed, "cut off"},
		{"cut size", []byte(w.Header + "\x01\x80"), Malformed, "ends in the middle"},
		{"size of 33 bits", []byte(w.Header + "\x01\xff\xff\xff\xff\x1f"), Malformed, "32 bits"},
		{"size of 6 bytes", []byte(w.Header + "\x01\x80\x80\x80\x80\x80\x00"), Malformed, "32 bits"},
		{"unknown section", one(13, "\x00"), Feature, "section 13"},
		{"out of order", []byte(w.Header + memory + types), Malformed, "out of order"},
		{"twice", []byte(w.Header + types + types), Malformed, "twice"},
		{"too many bytes", one(w.Type, "\x00\x00"), Malformed, "1 bytes too many"},
		{"count of types", one(w.Type, most), TooLarge, "types"},
		{"count beyond the bytes", one(w.Type, w.U32(9000)), Malformed, "9000 types are announced"},
		{"no function type", one(w.Type, "\x01\x5f\x00\x00"), Feature, "0x5f"},
		{"value type", one(w.Type, "\x01\x60\x01\x64\x00"), Feature, "0x64"},
		{"parameters", one(w.Type, "\x01\x60"+w.Name(strings.Repeat("\x7f", 101))+"\x00"), TooLarge, "101 parameters"},
		{"import of a memory", one(w.Import, w.Vec(w.Name("env")+w.Name("m")+"\x02\x00\x01")), BadImport, `memory "env"."m"`},
		{"import of a tag", one(w.Import, w.Vec(w.Name("env")+w.Name("m")+"\x04\x00\x01")), BadImport, "kind 4"},
		{"import of no type", one(w.Import, w.Vec(w.Name("env")+w.Name("f")+"\x00\x00")), Malformed, "type 0 of 0"},
		{"name not UTF-8", one(w.Import, w.Vec(w.Name("\xff")+w.Name("m")+"\x00\x00")), Malformed, "UTF-8"},
		{"name too long", one(w.Import, w.Vec(w.Name(strings.Repeat("x", MaxName+1)))), TooLarge, "name"},
		{"function without a body", []byte(w.Header + types + w.Section(w.Function, w.Vec("\x00"))), Malformed, "1 functions are declared, 0"},
		{"table too large", one(w.Table, w.Vec("\x70\x00"+w.U32(MaxTable+1))), TooLarge, "table"},
		{"table of numbers", one(w.Table, w.Vec("\x7f\x00\x01")), Feature, "reference type"},
		{"ten tables", one(w.Table, w.Vec(strings.Split(strings.Repeat("\x70\x00\x01,", 10), ",")[:10]...)), TooLarge, "10 tables"},
		{"two memories", one(w.Memory, w.Vec("\x00\x01", "\x00\x01")), Feature, "2 memories"},
		{"shared memory", one(w.Memory, w.Vec("\x03\x01\x02")), Feature, "shared"},
		{"64-bit memory", one(w.Memory, w.Vec("\x04\x01")), Feature, "64-bit"},
		{"memory limits", one(w.Memory, w.Vec("\x01\x02\x01")), Malformed, "above the maximum"},
		{"memory over 4 GiB", one(w.Memory, w.Vec("\x00"+w.U32(MaxPages+1))), Malformed, "65536 pages"},
		{"global without a value", one(w.Global, w.Vec("\x7f\x00\x0b")), Malformed, "instruction 0x0b"},
		{"global of a global", one(w.Global, w.Vec("\x7f\x00\x23\x00\x0b")), Feature, "reads a global"},
		{"extended constant", one(w.Global, w.Vec("\x7f\x00"+w.Const(1)+w.Const(1)+"\x6a\x0b")), Feature, "more than one"},
		{"constant of 33 bits", one(w.Global, w.Vec("\x7f\x00\x41\xff\xff\xff\xff\x4f\x0b")), Malformed, "32 bits"},
		{"vector constant", one(w.Global, w.Vec("\x7b\x00\xfd\x0d"+strings.Repeat("\x00", 16)+"\x0b")), Malformed, "0xfd 13"},
		{"global neither nor", one(w.Global, w.Vec("\x7f\x02"+w.Const(1)+"\x0b")), Malformed, "0x02"},
		{"export twice", []byte(w.Header + memory + w.Section(w.Export, w.Vec(w.Name("m")+"\x02\x00", w.Name("m")+"\x02\x00"))), Malformed, "twice"},
		{"export of nothing", one(w.Export, w.Vec(w.Name("f")+"\x00\x07")), Malformed, "function 7 of 0"},
		{"export of a tag", one(w.Export, w.Vec(w.Name("f")+"\x04\x07")), Feature, "kind of export"},
		{"start of nothing", one(w.Start, "\x00"), Malformed, "start section"},
		{"empty element segment inside", []byte(w.Header + table + w.Section(w.Element, w.Vec("\x00"+w.Const(1)+"\x0b"+w.Vec()))), 0, ""},
		{"element segment outside", []byte(w.Header + table + w.Section(w.Element, w.Vec("\x00"+w.Const(3)+"\x0b"+w.Vec()))), Malformed, "outside its table"},
		{"element segment below", []byte(w.Header + table + w.Section(w.Element, w.Vec("\x04"+w.Const(-1)+"\x0b"+w.Vec("\xd0\x70\x0b")))), Malformed, "outside its table"},
		{"element segment for no table", one(w.Element, w.Vec("\x00"+w.Const(0)+"\x0b"+w.Vec())), Malformed, "table 0 of 0"},
		{"element of no function", []byte(w.Header + table + w.Section(w.Element, w.Vec("\x00"+w.Const(0)+"\x0b"+w.Vec("\x05")))), Malformed, "function 5 of 0"},
		{"element segment kind", one(w.Element, w.Vec("\x08")), Malformed, "kind 8"},
		{"data segment outside", []byte(w.Header + memory + w.Section(w.Data, w.Vec("\x00"+w.Const(65535)+"\x0b"+w.Name("ab")))), Malformed, "outside its memory"},
		{"data segment for no memory", one(w.Data, w.Vec("\x00"+w.Const(0)+"\x0b"+w.Name("ab"))), Malformed, "memory 0 of 0"},
		{"data segment cut", one(w.Data, w.Vec("\x01\x09a")), Malformed, "9 bytes are announced"},
		{"data segment kind", one(w.Data, w.Vec("\x03")), Malformed, "kind 3"},
		{"offset is no number", []byte(w.Header + memory + w.Section(w.Data, w.Vec("\x00\x42\x00\x0b\x00"))), Malformed, "no i32"},
		{"data count", []byte(w.Header + w.Section(w.DataCount, "\x02") + w.Section(w.Data, w.Vec("\x01\x00"))), Malformed, "data count"},
		{"2^31 locals", code("\x01" + w.U32(1<<31) + "\x7f\x0b"), TooLarge, "locals"},
		{"locals in groups", code(w.Vec(w.U32(30001)+"\x7f", w.U32(30000)+"\x7e") + "\x0b"), TooLarge, "locals"},
		{"body without end", code("\x00\x01"), Malformed, "does not end"},
		{"empty body", code(""), Malformed, "middle of a value"},
		{"body too large", code("\x00" + strings.Repeat("\x01", MaxBody) + "\x0b"), TooLarge, "bytes of code, at most"},
		{"data segments", one(w.Data, w.U32(200_000)+strings.Repeat("\x01\x00", 200_000)), TooLarge, "200000 data segments"},
		{"custom sections", []byte(w.Header + strings.Repeat(w.Section(w.Custom, "\x00"), MaxCustom+1)), TooLarge, "more than"},
		{"module too large", append([]byte(w.Header), make([]byte, MaxModule)...), TooLarge, "at most"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := Parse(tt.module)
			if tt.reason == 0 {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var form *Error
			if !errors.As(err, &form) {
				t.Fatalf("got %v, %v", m, err)
			}
			if form.Reason != tt.reason || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got reason %d, %q; want reason %d, %q", form.Reason, err, tt.reason, tt.text)
			}
			if form.Offset < 0 || form.Offset > len(tt.module) {
				t.Errorf("offset %d of %d bytes", form.Offset, len(tt.module))
			}
		})
	}
}

// code is a module with one function that has a body.
func code(body string) []byte {
	return []byte(w.Header + w.Section(w.Type, w.Vec(w.FuncType("", ""))) + w.Section(w.Function, w.Vec("\x00")) + w.Section(w.Code, w.Vec(w.Name(body))))
}

func TestEveryPrefixIsRefusedOrSmaller(t *testing.T) {
	whole := rich()
	for n := range whole {
		m, err := Parse(whole[:n])
		if err == nil && len(m.Bodies) == 5 && len(m.Customs) == 2 {
			t.Errorf("a prefix of %d of %d bytes has all that the whole module has", n, len(whole))
		}
	}
}

func TestAnnouncedCountsCostNothing(t *testing.T) {
	for id := byte(w.Type); id <= w.Data; id++ {
		module := one(id, "\xff\xff\xff\xff\x0f")
		if allocs := testing.AllocsPerRun(10, func() { _, _ = Parse(module) }); allocs > 20 {
			t.Errorf("section %d: %v allocations", id, allocs)
		}
	}
}

func TestPaddedNumbersAreTaken(t *testing.T) {
	module := []byte(w.Header + "\x01\x84\x80\x80\x80\x00" + "\x81\x80\x00\x60\x00\x00")
	module[9] = 6 | 0x80
	m, err := Parse(module)
	if err != nil || len(m.Types) != 1 {
		t.Errorf("got %v, %v", m, err)
	}
}

func TestSigned(t *testing.T) {
	tests := []struct {
		in    string
		width int
		want  int64
		ok    bool
	}{
		{"\x00", 32, 0, true},
		{"\x7f", 32, -1, true},
		{"\x80\x7f", 32, -128, true},
		{"\xff\xff\xff\xff\x07", 32, 1<<31 - 1, true},
		{"\x80\x80\x80\x80\x78", 32, -1 << 31, true},
		{"\xff\xff\xff\xff\x7f", 32, -1, true},
		{"\xff\xff\xff\xff\x0f", 32, 0, false},
		{"\x80\x80\x80\x80\x80\x00", 32, 0, false},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00", 64, 1<<63 - 1, true},
		{"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7f", 64, -1 << 63, true},
		{"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 64, 0, false},
	}
	for _, tt := range tests {
		r := &reader{b: []byte(tt.in)}
		got := r.signed(tt.width)
		if (r.err == nil) != tt.ok || tt.ok && got != tt.want {
			t.Errorf("% x as %d bits: got %d, %v; want %d, %v", tt.in, tt.width, got, r.err, tt.want, tt.ok)
		}
	}
}

func TestBrokenNamesAreLeftOut(t *testing.T) {
	for _, data := range []string{"\x01", "\x01\x05\x01", "\x01" + w.Name(w.Vec("\x00"+w.Name("\xff\xfe"))), "\x01" + w.Name("\xff\xff\xff\xff\x0f"), "\x00\x00\x07\xff"} {
		m := w.Transform(w.Const(0), w.Echo())
		m.Customs = [][2]string{{"name", data}}
		form, err := Parse(m.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if names := form.FuncNames(); len(names) != 0 {
			t.Errorf("% x gives %v", data, names)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(rich())
	f.Add(code("\x01\x02\x7f\x0b"))
	f.Add([]byte("\x00asm\x0d\x00\x01\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Parse(b)
		if err != nil {
			var form *Error
			if !errors.As(err, &form) || form.Reason == 0 || form.Text == "" {
				t.Fatalf("%#v", err)
			}
			return
		}
		m.FuncNames()
		again, err := Parse(m.Strip())
		if err != nil {
			t.Fatalf("stripped: %v", err)
		}
		if len(again.Customs) != 0 || len(again.Funcs) != len(m.Funcs) || len(again.Exports) != len(m.Exports) {
			t.Fatalf("stripped to %+v from %+v", again, m)
		}
	})
}
