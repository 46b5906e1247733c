package spectest

import (
	"math"

	"github.com/wasmill/wasmill/host/sandbox/binary"
	"github.com/wasmill/wasmill/host/sandbox/rewriter"
)

// options are how the modules of the suite are rewritten: with limits as wide as they go.
func options(plain bool) rewriter.Options {
	return rewriter.Options{MaxPages: binary.MaxPages, MaxTable: math.MaxUint32, KeepData: true, Plain: plain}
}

// prepare takes a module through the decoder and the rewriter.
func prepare(b []byte, o rewriter.Options) ([]byte, error) {
	m, err := binary.Profile{Any: true}.Parse(b)
	if err != nil {
		return nil, &refused{"decoder", err}
	}
	out, err := rewriter.Rewrite(m, o)
	if err != nil {
		return nil, &refused{"rewriter", err}
	}
	return out.Wasm, nil
}
