package binary

import (
	"strings"
	"testing"

	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

func TestEffects(t *testing.T) {
	memarg, lane := "\x02\x08", "\x02\x08\x03"
	tests := []struct {
		name, code string
		want       Effects
	}{
		{"plain", "\x00\x01\x0f\x1a\x1b\x45\xc4\xd1\x05", Effects{}},
		{"blocks", "\x02\x40\x03\x7f\x04\x80\x01\x0b\x0b\x0b", Effects{}},
		{"branches", "\x0c\x00\x0d\x85\x00\x0e\x02\x00\x01\x02", Effects{}},
		{"calls", "\x10\x05\x11\x01\x80\x80\x80\x80\x00", Effects{}},
		{"select", "\x1c\x01\x7f", Effects{}},
		{"variables", "\x20\x01\x21\x01\x22\x01\x23\x01\x24\x01", Effects{}},
		{"memory", "\x28" + memarg + "\x3e" + memarg + "\x3f\x00\x40\x00", Effects{}},
		{"numbers", w.Const(-5) + "\x42\x7f\x43\x26\x26\x26\x26\x44\x26\x26\x26\x26\x26\x26\x26\x26", Effects{}},
		{"references", "\xd0\x70\xd2\x01\x25\x00", Effects{}},
		{"bulk", "\xfc\x00\xfc\x07\xfc\x0a\x00\x00\xfc\x0b\x00\xfc\x10\x00", Effects{}},
		{"vectors", "\xfd\x00" + memarg + "\xfd\x0b" + memarg + "\xfd\x0c" + strings.Repeat("\x26", 16) + "\xfd\x0d" + strings.Repeat("\x26", 16) +
			"\xfd\x0e\xfd\x15\x26\xfd\x22\x26\xfd\x23\xfd\x54" + lane + "\xfd\x5b" + lane + "\xfd\x5d" + memarg + "\xfd\x60\xfd\x80\x01\xfd\xff\x01", Effects{}},
		{"table.set", "\x26\x00", Effects{Tables: true}},
		{"table.init", "\xfc\x0c\x00\x00", Effects{Tables: true}},
		{"table.copy", "\xfc\x0e\x00\x00", Effects{Tables: true}},
		{"table.grow", "\xfc\x0f\x00", Effects{Tables: true}},
		{"table.fill", "\xfc\x11\x00", Effects{Tables: true}},
		{"elem.drop", "\xfc\x0d\x00", Effects{Elements: true}},
		{"memory.init", "\xfc\x08\x00\x00", Effects{Data: true}},
		{"data.drop", "\xfc\x09\x00", Effects{Data: true}},
		{"unknown", "\x06", Effects{Unsure: true}},
		{"tail call", "\x12\x00", Effects{Unsure: true}},
		{"unknown bulk", "\xfc\x12", Effects{Unsure: true}},
		{"padded bulk", "\xfc\x8c\x00\x00\x00", Effects{Unsure: true}},
		{"padded vector", "\xfd\x8c\x00", Effects{Unsure: true}},
		{"relaxed vector", "\xfd\x80\x02", Effects{Unsure: true}},
		{"vector without its second byte", "\xfd\x80", Effects{Unsure: true}},
		{"atomic", "\xfe\x00" + memarg, Effects{Unsure: true}},
		{"second memory", "\x40\x01", Effects{Unsure: true}},
		{"alignment with a memory", "\x28\x42\x01\x00", Effects{Unsure: true}},
		{"cut number", "\x43\x00", Effects{Unsure: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := Parse(code("\x01\x02\x7f" + tt.code + "\x0b"))
			if err != nil {
				t.Fatal(err)
			}
			if got := m.Effects(); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestCapturable(t *testing.T) {
	tests := []struct {
		name   string
		change func(*w.Module)
		want   bool
	}{
		{"as it is", func(*w.Module) {}, true},
		{"mutable number", func(m *w.Module) { m.Globals = []string{"\x7e\x01\x42\x00\x0b"} }, true},
		{"constant vector", func(m *w.Module) {
			m.Globals = []string{"\x7b\x00\xfd\x0c" + strings.Repeat("\x00", 16) + "\x0b"}
		}, true},
		{"mutable vector", func(m *w.Module) {
			m.Globals = []string{"\x7b\x01\xfd\x0c" + strings.Repeat("\x00", 16) + "\x0b"}
		}, false},
		{"mutable reference", func(m *w.Module) { m.Globals = []string{"\x70\x01\xd0\x70\x0b"} }, false},
		{"reserved name", func(m *w.Module) { m.Exports = []string{w.Name("__wasmill_g0") + "\x02\x00"} }, false},
		{"table written", func(m *w.Module) { m.Funcs = append(m.Funcs, w.Func{Code: "\x26\x00"}) }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := w.Transform(w.Const(0), w.Echo())
			tt.change(m)
			form, err := Parse(m.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			if got := form.Capturable(); got != tt.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestOpen(t *testing.T) {
	form, err := Parse(rich())
	if err != nil {
		t.Fatal(err)
	}
	open, err := Parse(form.Open())
	if err != nil {
		t.Fatal(err)
	}
	if open.HasStart || len(open.Customs) > 0 || len(open.data) > 0 {
		t.Errorf("start %v, %d custom sections, %d bytes of data", open.HasStart, len(open.Customs), len(open.data))
	}
	more := open.Exports[len(form.Exports):]
	want := []Export{{"__wasmill_g0", KindGlobal, 0}, {"__wasmill_g2", KindGlobal, 2}, {StartExport, KindFunc, 5}}
	if len(more) != len(want) {
		t.Fatalf("%v was added", more)
	}
	for i := range want {
		if more[i] != want[i] {
			t.Errorf("export %d is %v, want %v", i, more[i], want[i])
		}
	}
	var segments []string
	form.EachSegment(func(offset uint32, data []byte) { segments = append(segments, string(rune('0'+offset))+string(data)) })
	if len(segments) != 1 || segments[0] != "8hello" {
		t.Errorf("segments %q", segments)
	}
}

// FuzzOpen holds what Open writes to what it read: it always reads again, with the same functions and more exports.
func FuzzOpen(f *testing.F) {
	f.Add(rich())
	f.Add(w.Transform(w.Const(0), w.Echo()).Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Parse(b)
		if err != nil || !m.Capturable() {
			return
		}
		open, err := Parse(m.Open())
		if err != nil {
			t.Fatalf("opened: %v", err)
		}
		if len(open.Funcs) != len(m.Funcs) || len(m.Exports) > 0 && len(open.Exports) < len(m.Exports) || open.HasStart {
			t.Fatalf("opened to %+v from %+v", open, m)
		}
		m.EachSegment(func(offset uint32, data []byte) {
			if uint64(offset)+uint64(len(data)) > uint64(m.Memories[0].Min)*PageSize {
				t.Fatal("a segment outside of the memory")
			}
		})
	})
}
