package wasmill

import "runtime"

//go:wasmexport wasmill_alloc
func wasmillAlloc(n uint32) uint32 { return module.alloc(n) }

//go:wasmexport wasmill_init
func wasmillInit(config, n, maxFrame uint32) int32 { return module.init(config, n, maxFrame) }

// wasmillBatch yields once a call, so that what the runtime has put off (timers, finalizers) does not pile up.
//
//go:wasmexport wasmill_batch
func wasmillBatch(frame, _ uint32) int32 {
	status := module.batch(uint64(frame))
	runtime.Gosched()
	return status
}
