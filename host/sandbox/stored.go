package sandbox

import "encoding/binary"

// Stored is the module as one file: with a sidecar, the sidecar stands in it as the custom section that it replaces. Its
// sha256 is the module's digest, so that what is kept under a digest is all there is to the module.
func (b Binary) Stored() []byte {
	if b.Sidecar == nil {
		return b.Wasm
	}
	name := manifestSection
	content := make([]byte, 0, len(name)+len(b.Sidecar)+1)
	content = append(content, byte(len(name)))
	content = append(content, name...)
	content = append(content, b.Sidecar...)
	out := append([]byte(nil), b.Wasm...)
	out = append(out, 0) // a custom section
	out = binary.AppendUvarint(out, uint64(len(content)))
	return append(out, content...)
}
