//go:build !wasm

package wasmill

import "github.com/wasmill/wasmill/abi/sdk/go/internal/mem"

// What a module exports, package wasmilltest calls.
func init() {
	mem.Guest.Alloc = module.alloc
	mem.Guest.Init = module.init
	mem.Guest.Batch = func(frame, _ uint32) int32 { return module.batch(uint64(frame)) }
	mem.Guest.Use = func(t any) {
		module = guest{transform: t.(Transform), pointers: module.pointers, declared: module.declared, state: module.state}
	}
}
