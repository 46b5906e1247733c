package sandbox

import (
	"errors"
	"fmt"

	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sandbox/binary"
)

// Codes of the faults this package returns.
const (
	CodeNotWasm   = "module.not_wasm"  // other bytes than a core module
	CodeComponent = "module.component" // a component
	CodeMalformed = "module.malformed" // cut off, or against the format
	CodeTooLarge  = "module.too_large" // over a limit of the module's form
	CodeFeature   = "module.feature"   // outside of WebAssembly 2.0, or not supported here
	CodeImport    = "module.import"    // an import that is not offered, or has the wrong type
	CodeExport    = "module.export"    // an export that ABI 1 needs is missing or has the wrong type
	CodeABI       = "module.abi"       // built for another version of the ABI, or for none
	CodeManifest  = "module.manifest"  // the manifest is wrong, or there are two
	CodeInvalid   = "module.invalid"   // its code is refused by the engine
	CodeMemory    = "module.memory"    // its memory is not exported, or begins larger than it may be
	CodeStart     = "module.start"     // its start-up failed
	CodeAlloc     = "module.alloc"     // wasmill_alloc failed in a batch
	CodeLimits    = "module.limits"    // limits that make no sense
	CodeCache     = "module.cache"     // the compile cache's folder is not private, or cannot be made
)

// ErrAlloc is what a fault with CodeAlloc wraps: the guest did not give the host memory for a frame. It fails the batch
// and is never the fault of a record.
var ErrAlloc = errors.New("wasmill_alloc failed")

// refuse makes a fault about a module.
func refuse(code, name, wayOut, format string, args ...any) error {
	return fault.New(code, name, fmt.Errorf(format, args...), wayOut)
}

// largeWayOut is what to do about a module that is too large.
const largeWayOut = "make the module smaller: build it with optimisation and without debug data"

// refuseForm makes a fault of what the reader of the format says.
func refuseForm(name string, err error) error {
	var form *binary.Error
	if !errors.As(err, &form) {
		return fmt.Errorf("read module %s: %w", name, err)
	}
	switch form.Reason {
	case binary.NotWasm:
		return fault.New(CodeNotWasm, name, errors.New(form.Text), "name a core WebAssembly module, built as abi/README.md says")
	case binary.Component:
		return fault.New(CodeComponent, name, errors.New(form.Text), "build a core module, for Rust with the target wasm32-unknown-unknown")
	case binary.TooLarge:
		return fault.New(CodeTooLarge, name, err, largeWayOut)
	case binary.Feature:
		return fault.New(CodeFeature, name, err, "build it for WebAssembly 2.0, without threads, exceptions, tail calls, 64-bit or several memories")
	case binary.BadImport:
		return fault.New(CodeImport, name, err, "define it in the module and export the memory")
	}
	return fault.New(CodeMalformed, name, err, "build or copy the module again")
}
