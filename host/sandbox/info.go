package sandbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sandbox/binary"
)

// manifestSection is the custom section a module's manifest stands in.
const manifestSection = "wasmill"

// manifestMark stands in a module that knows its manifest and cannot carry it where a host reads it, as those of Go. Such a
// module looks up fields and ports in the text inside; the host must not go by another one.
const manifestMark = "wasmill-manifest-beside-module-1"

const manifestWayOut = "correct the manifest as abi/README.md says"

// readManifest reads the manifest from the module or from its sidecar.
func readManifest(b Binary, form *binary.Module) (*abi.Manifest, error) {
	var text []byte
	for _, c := range form.Customs {
		if c.Name != manifestSection {
			continue
		}
		if text != nil {
			return nil, refuse(CodeManifest, b.Name, "keep one", "it has two sections %q", manifestSection)
		}
		text = append([]byte{}, c.Data...)
	}
	place := b.Name
	if b.Sidecar != nil {
		if text != nil {
			return nil, refuse(CodeManifest, b.Name, "remove the file beside the module, or build the module without the section",
				"it has a manifest in the section %q and another one beside it", manifestSection)
		}
		text, place = b.Sidecar, b.Name+".json"
	}
	if err := sameManifest(b, form, text); err != nil {
		return nil, err
	}
	if text == nil {
		return abi.DefaultManifest(), nil
	}
	m, err := abi.ParseManifest(text)
	if err != nil {
		return nil, fault.New(CodeManifest, place, fmt.Errorf("the manifest is wrong: %w", err), manifestWayOut)
	}
	if m.ABI != 0 && m.ABI != abi.Version {
		return nil, fault.New(CodeABI, place, fmt.Errorf("it is for ABI %d, this version runs ABI %d", m.ABI, abi.Version), "build it for ABI 1")
	}
	return m, nil
}

// sameManifest checks that a module with the mark comes with the text that it was built with, byte for byte but for blanks
// around it: a linker keeps a text without zeros in one piece. The module's own custom sections do not count.
func sameManifest(b Binary, form *binary.Module, text []byte) error {
	if !bytes.Contains(b.Wasm, []byte(manifestMark)) {
		return nil
	}
	const wayOut = "copy the manifest.json it was built with to %s.json, or build the module again and then copy it"
	switch text = bytes.TrimSpace(text); {
	case len(text) == 0:
		return refuse(CodeManifest, b.Name, fmt.Sprintf(wayOut, filepath.Base(b.Name)), "the module was built with a manifest, and there is none beside it (%s.json)", filepath.Base(b.Name))
	case len(text) <= abi.MaxManifest && !contains(form.Strip(), text): // a longer one is refused by its length
		return refuse(CodeManifest, b.Name, fmt.Sprintf(wayOut, filepath.Base(b.Name)), "the manifest beside the module is not the one it was built with")
	}
	return nil
}

// contains says whether part stands in b, which bytes.Contains does too, but for bytes that are made for it in the product
// of both lengths. This takes their sum, by the search of Knuth, Morris and Pratt.
func contains(b, part []byte) bool {
	borders := make([]int, len(part)) // of part[:i+1], the length of its longest end that it also begins with
	matched := 0
	advance := func(c byte) {
		for matched > 0 && part[matched] != c {
			matched = borders[matched-1]
		}
		if part[matched] == c {
			matched++
		}
	}
	for i := 1; i < len(part); i++ {
		advance(part[i])
		borders[i] = matched
	}
	matched = 0
	for _, c := range b {
		if advance(c); matched == len(part) {
			return true
		}
	}
	return false
}

// infoOf collects what can be said of a module without running it.
func infoOf(b Binary, form *binary.Module, manifest *abi.Manifest) *Info {
	info := &Info{Digest: digestOf(b), Size: len(b.Wasm), Manifest: manifest, MemoryMin: form.Memories[0].Min, MemoryMax: form.Memories[0].Max}
	info.Default = b.Sidecar == nil && !slices.ContainsFunc(form.Customs, func(c binary.Custom) bool { return c.Name == manifestSection })
	for _, im := range form.Imports {
		info.Stateful = info.Stateful || im.Module == importModule && (im.Name == importRead || im.Name == importWrite)
		info.Imports = append(info.Imports, abi.EscapeText([]byte(im.Module+"."+im.Name), maxShown)+" "+form.Types[im.Type].String())
	}
	for _, e := range form.Exports {
		text := abi.EscapeText([]byte(e.Name), maxShown)
		if t, ok := form.FuncType(e.Index); ok && e.Kind == binary.KindFunc {
			text += " " + t.String()
		} else {
			text += " " + e.Kind.String()
		}
		info.Exports = append(info.Exports, text)
	}
	slices.Sort(info.Imports)
	slices.Sort(info.Exports)
	return info
}

// digestOf is the sha256 of a module as it is stored.
func digestOf(b Binary) string {
	sum := sha256.Sum256(b.Stored())
	return hex.EncodeToString(sum[:])
}

// maxShown is how many bytes of a module's names are shown.
const maxShown = 200
