package job

import (
	"strings"
	"testing"

	"github.com/wasmill/wasmill/abi"
)

// TestDiverge names the part that differs, and whether only the host can have changed it.
func TestDiverge(t *testing.T) {
	zeros := strings.Repeat("0", 64)
	module := func(f func(*ModuleInputs)) func(*RevisionInputs) {
		return func(in *RevisionInputs) {
			m := in.Modules["clean"]
			f(&m)
			in.Modules["clean"] = m
		}
	}
	was, _ := revisionOf(t, revised, revisionInputs())
	for _, tt := range []struct {
		name string
		edit *strings.Replacer
		in   func(*RevisionInputs)
		want []string // path, and ! before what is the host's
	}{
		{name: "nothing"},
		{name: "the log limit", edit: strings.NewReplacer("      config", "      limits: {log: 1MiB}\n      config")},
		{name: "module", in: module(func(m *ModuleInputs) { m.SHA256 = zeros }), want: []string{"transforms.clean.module"}},
		{name: "image", in: module(func(m *ModuleInputs) { m.Image = zeros }), want: []string{"!transforms.clean.image"}},
		{name: "module and image", in: module(func(m *ModuleInputs) { m.SHA256, m.Image = zeros, zeros }), want: []string{"transforms.clean.module", "transforms.clean.image"}},
		{name: "manifest", in: module(func(m *ModuleInputs) {
			m.Manifest = &abi.Manifest{ABI: 1, Inputs: m.Manifest.Inputs, Outputs: append(m.Manifest.Outputs, abi.OutputPort{Name: "new"})}
		}), want: []string{"transforms.clean.manifest"}},
		{name: "config", edit: strings.NewReplacer("min: 100", "min: 101"), want: []string{"transforms.clean.config"}},
		{name: "limits", edit: strings.NewReplacer("      config", "      limits: {depth: 17}\n      config"), want: []string{"transforms.clean.limits"}},
		{name: "inputs", edit: strings.NewReplacer("from: [flights, rows]", "from: [rows]"), want: []string{"transforms.clean.from"}},
		{name: "a new transform", edit: strings.NewReplacer("  sinks:", "    - {name: more, from: [clean], module: ./m.wasm}\n  sinks:"), in: func(in *RevisionInputs) { in.Modules["more"] = in.Modules["clean"] }, want: []string{"transforms.more"}},
		{name: "lanes", edit: strings.NewReplacer("  sources:", "  lanes: 8\n  sources:"), want: []string{"lanes"}},
		{name: "event time", edit: strings.NewReplacer("lateness: 2h", "lateness: 3h"), want: []string{"sources.flights"}},
		{name: "sinks", edit: strings.NewReplacer("from: [clean.flights, orders]", "from: [flights]"), want: []string{"sinks"}},
		{name: "errors", edit: strings.NewReplacer("deadLetters: dead}", "deadLetters: dead, max: 7}"), want: []string{"errors"}},
		{name: "host", in: func(in *RevisionInputs) { in.ABI, in.Semantics, in.Groups = 2, 8, 128 }, want: []string{"!abi", "!semantics", "!groups"}},
		{name: "host and transform", edit: strings.NewReplacer("min: 100", "min: 101"), in: func(in *RevisionInputs) { in.Semantics = 9 }, want: []string{"!semantics", "transforms.clean.config"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text, in := revised, revisionInputs()
			if tt.edit != nil {
				if text = tt.edit.Replace(revised); text == revised {
					t.Fatal("nothing to change")
				}
			}
			if tt.in != nil {
				tt.in(&in)
			}
			now, _ := revisionOf(t, text, in)
			list, err := Diverge(was, now)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range list {
				path := d.Path
				if d.Host {
					path = "!" + path
				}
				got = append(got, path)
				if d.Was == d.Now || !strings.HasPrefix(d.String(), d.Path+" is "+d.Now+", decided was "+d.Was) {
					t.Errorf("it says %s", d)
				}
			}
			if strings.Join(got, " ") != strings.Join(tt.want, " ") {
				t.Errorf("they differ in %v, want %v", got, tt.want)
			}
		})
	}
	if _, err := Diverge(was, []byte("[")); err == nil {
		t.Error("what is no revision diverges in nothing")
	}
	if list, err := Diverge([]byte(strings.Replace(string(was), `"name":"clean"`, `"name":"other"`, 1)), was); err != nil || len(list) != 2 || list[0].Now != "gone" {
		t.Errorf("a transform that is gone: %v, %v", list, err)
	}
}
