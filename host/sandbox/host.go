package sandbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero/api"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/sandbox/binary"
)

// hostFunction is a function of the host besides WASI.
type hostFunction struct {
	kind binary.FuncType
	call func(in *instance, stack []uint64)
}

// hostFunctions returns a function that a guest may import besides WASI.
func hostFunctions(module, name string) (hostFunction, bool) {
	three := binary.FuncType{Params: i32s(3)}
	switch {
	case module == importModule && name == "emit":
		return hostFunction{three, hostEmit}, true
	case module == importModule && name == "log":
		return hostFunction{three, hostLog}, true
	case module == importModule && name == importRead:
		return hostFunction{binary.FuncType{Params: i32s(5), Results: i32s(1)}, hostStateRead}, true
	case module == importModule && name == importWrite:
		return hostFunction{binary.FuncType{Params: i32s(2)}, hostStateWrite}, true
	case module == "env" && name == "abort":
		return hostFunction{binary.FuncType{Params: i32s(4)}, hostAbort}, true
	}
	return hostFunction{}, false
}

// errStopped is what wazero sees when a host function ends the guest; why is in instance.stopped.
var errStopped = errors.New("stopped by the host")

// stop ends the guest from inside a host function. A panic is the one way wazero has for it: it unwinds the guest and
// comes back as an error of the call.
func (in *instance) stop(why error) {
	in.stopped = why
	panic(errStopped)
}

// hostEmit is wasmill_1.emit(ptr, count, stride). Of a 32-bit parameter the upper half is undefined and differs by engine.
func hostEmit(in *instance, stack []uint64) {
	if !in.inBatch {
		in.stop(&abi.Violation{Trap: abi.TrapEmit, Detail: "emit is called outside of wasmill_batch"})
	}
	before := in.rules.Used
	err := abi.ReadOutput(in.memory(), uint32(stack[0]), uint32(stack[1]), uint32(stack[2]), &in.rules, in.visit)
	if err != nil {
		in.stop(err)
	}
	in.pay(uint64(in.rules.Used - before))
}

// hostLog is wasmill_1.log(level, ptr, len).
func hostLog(in *instance, stack []uint64) {
	level, ptr, n := uint32(stack[0]), uint32(stack[1]), uint32(stack[2])
	memory := in.memory()
	if uint64(ptr)+uint64(n) > uint64(len(memory)) {
		in.stop(&abi.Violation{Trap: abi.TrapMemory, Detail: fmt.Sprintf("log of %d bytes at address %d, memory has %d", n, ptr, len(memory))})
	}
	in.pay(min(uint64(n), abi.MaxLogLine))
	in.log.line(int(min(level, levelError)), memory[ptr:ptr+n])
}

// hostAbort is env.abort(message, file, line, column), which AssemblyScript calls.
func hostAbort(in *instance, stack []uint64) {
	text := fmt.Sprintf("abort at line %d, column %d", uint32(stack[2]), uint32(stack[3]))
	in.stop(&Failure{Trap: abi.TrapAbort, Text: text, Progress: abi.NoIndex})
}

// hostExit is proc_exit(code) of WASI: a transform has no business ending.
func hostExit(ctx context.Context, _ api.Module, stack []uint64) {
	in := guest(ctx)
	in.stop(&Failure{Trap: abi.TrapExit, Text: fmt.Sprintf("proc_exit(%d)", int32(uint32(stack[0]))), Progress: abi.NoIndex})
}
