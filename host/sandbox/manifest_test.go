package sandbox

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/host/fault"
)

// committedGo is a transform in Go, and the manifest it was built with.
func committedGo(t *testing.T) (wasm, manifest []byte) {
	t.Helper()
	dir := filepath.Join("..", "..", "transforms", "clean")
	wasm, err := os.ReadFile(filepath.Join(dir, "clean-go.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	if manifest, err = os.ReadFile(filepath.Join(dir, "go", "manifest.json")); err != nil {
		t.Fatal(err)
	}
	return wasm, manifest
}

// TestManifestBesideGoModule: a module that looks fields and ports up in a manifest inside runs with no other.
func TestManifestBesideGoModule(t *testing.T) {
	wasm, text := committedGo(t)
	stale := bytes.Replace(text, []byte(`"/dep_time", `), nil, 1)
	if bytes.Equal(stale, text) {
		t.Fatal("the stale manifest is the right one")
	}
	section := func(m []byte) []byte { return Binary{Wasm: wasm, Sidecar: m}.Stored() }
	const missing, other = "there is none beside it (m.wasm.json)", "is not the one it was built with"
	tests := map[string]struct {
		wasm, sidecar []byte
		want          string
	}{
		"missing":            {wasm, nil, missing},
		"empty":              {wasm, []byte{}, missing},
		"stale":              {wasm, stale, other},
		"of another module":  {wasm, []byte(manifest), other},
		"right":              {wasm, text, ""},
		"without line's end": {wasm, bytes.TrimSpace(text), ""},
		"stale, inside":      {section(stale), nil, other},
		"right, inside":      {section(text), nil, ""},
		"no mark, none":      {good().Bytes(), nil, ""},
		"no mark, another":   {good().Bytes(), []byte(manifest), ""},
	}
	e := engines(t)["interpreter"]
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			m, err := e.Compile(t.Context(), Binary{Name: "in/m.wasm", Wasm: tt.wasm, Sidecar: tt.sidecar})
			if err == nil {
				err = m.Close(t.Context())
			}
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			f, ok := errors.AsType[*fault.Error](err)
			if !ok || f.ErrCode != CodeManifest || !strings.Contains(err.Error(), tt.want) || !strings.Contains(f.WayOut, "to m.wasm.json") {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// TestContains compares the search with that of the library, over all short texts of two letters.
func TestContains(t *testing.T) {
	var texts [][]byte
	for n := 1; n <= 8; n++ {
		for bits := range 1 << n {
			text := make([]byte, n)
			for i := range text {
				text[i] = 'a' + byte(bits>>i&1)
			}
			texts = append(texts, text)
		}
	}
	for _, b := range texts {
		for _, part := range texts {
			if got, want := contains(b, part), bytes.Contains(b, part); got != want {
				t.Fatalf("%s in %s: %v", part, b, got)
			}
		}
	}
}
