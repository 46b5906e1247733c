package binary

import (
	"strings"
	"testing"

	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

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
		{"table written", func(m *w.Module) {
			m.Table, m.Funcs = 1, append(m.Funcs, w.Func{Code: w.Const(0) + "\xd0\x70\x26\x00"})
		}, false},
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
