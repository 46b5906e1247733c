package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"slices"

	"github.com/tetratelabs/wazero/api"

	"github.com/wasmill/wasmill/host/sandbox/binary"
	"github.com/wasmill/wasmill/host/sandbox/rewriter"
)

// image is what the start-up of a capturable module left.
type image struct {
	pages   uint32
	globals map[string]uint64
	elapsed uint64 // of the virtual clock, ns
	backing backing
}

// capture copies what an instance's start-up left. Only for a capturable module.
func capture(in *instance) (image, error) {
	memory := in.memory()
	im := image{pages: uint32(len(memory) / binary.PageSize), globals: map[string]uint64{}, elapsed: in.wasi.Elapsed()}
	for i, g := range in.program.module.form.Globals {
		if g.Mutable {
			name := rewriter.Global(i)
			im.globals[name] = in.mod.ExportedGlobal(name).Get()
		}
	}
	var err error
	im.backing, err = newBacking(memory[:meaning(memory)])
	return im, err
}

// meaning is the length of a memory up to the last page that is not all zeros.
func meaning(memory []byte) int {
	var zero [4096]byte
	end := len(memory)
	for end > 0 && string(memory[end-len(zero):end]) == string(zero[:]) {
		end -= len(zero)
	}
	return (end + binary.PageSize - 1) / binary.PageSize * binary.PageSize
}

// restore makes a fresh instance what the image was taken of. Its region holds the image's memory from the start.
func (im *image) restore(in *instance) error {
	memory := in.mod.Memory()
	have := memory.Size() / binary.PageSize
	if _, ok := memory.Grow(im.pages - have); !ok {
		return fmt.Errorf("grow from %d to %d pages", have, im.pages)
	}
	for name, value := range im.globals {
		g, ok := in.mod.ExportedGlobal(name).(api.MutableGlobal)
		if !ok {
			return fmt.Errorf("the global %s is not to be set", name)
		}
		g.Set(value)
	}
	in.wasi.Resume(im.elapsed)
	return nil
}

// digestOfImage is the digest of an instance's memory and of its mutable globals.
func digestOfImage(in *instance) string {
	h := sha256.New()
	memory := in.memory()
	fmt.Fprintf(h, "wasmill image 1\n%d\n", len(memory)/binary.PageSize)
	hashGlobals(h, in)
	h.Write(memory)
	return hex.EncodeToString(h.Sum(nil))
}

func hashGlobals(h hash.Hash, in *instance) {
	m := in.program.module
	names := map[int]string{}
	for i, g := range m.form.Globals {
		names[i] = rewriter.Global(i)
		if !g.Mutable || !g.Type.Numeric() {
			delete(names, i)
		}
	}
	for _, i := range slices.Sorted(maps.Keys(names)) {
		fmt.Fprintf(h, "%d %d\n", i, in.mod.ExportedGlobal(names[i]).Get())
	}
}
