package kit

import (
	"bytes"
	"encoding/binary"

	"github.com/tetratelabs/wazero/api"

	"github.com/wasmill/wasmill/abi"
)

const ( // WASI's errno
	errBadFile = 8
	errFault   = 21
	errInvalid = 28
	errNoSys   = 52
)

// host answers one call of a guest. A panic with an error ends the guest's call with that error.
func (l *refLane) host(module, name string, mem api.Memory, stack []uint64) {
	arg := func(i int) uint32 { return uint32(stack[i]) }
	trap := func(t abi.TrapName) { panic(&abi.Violation{Trap: t}) }
	switch name {
	case "emit":
		if l.visit == nil {
			trap(abi.TrapEmit)
		}
		all, _ := mem.Read(0, mem.Size())
		if err := abi.ReadOutput(all, arg(0), arg(1), arg(2), &l.rules, l.visit); err != nil {
			panic(err)
		}
	case "state_read", "state_write":
		if l.visit == nil {
			trap(abi.TrapState)
		}
		all, _ := mem.Read(0, mem.Size())
		var err error
		if name == "state_write" {
			err = abi.ReadStateWrites(all, arg(0), arg(1), &l.keyed, func(op *abi.StateOp) error {
				_, err := l.state.Write(op)
				return err
			})
		} else {
			var result int32
			result, err = abi.AnswerState(all, arg(0), arg(1), abi.StateBuffer{Ptr: arg(2), Cap: arg(3), Need: arg(4)}, &l.keyed, l.state)
			stack[0] = uint64(uint32(result))
		}
		if err != nil {
			panic(err)
		}
	case "log":
		text, ok := mem.Read(arg(1), arg(2))
		if !ok {
			trap(abi.TrapMemory)
		}
		l.p.log(Log{Level: int(min(arg(0), 3)), Text: Bytes(abi.EscapeText(text, abi.MaxLogLine))})
	case "abort":
		trap(abi.TrapAbort)
	case "proc_exit":
		trap(abi.TrapExit)
	default:
		stack[0] = l.wasi(name, mem, stack)
	}
}

func (l *refLane) wasi(name string, mem api.Memory, stack []uint64) uint64 {
	fault := func(ok bool) uint64 {
		if ok {
			return 0
		}
		return errFault
	}
	switch name {
	case "clock_time_get":
		l.ticking++
		return fault(mem.WriteUint64Le(uint32(stack[2]), l.clock+l.ticking))
	case "random_get":
		b, ok := mem.Read(uint32(stack[0]), uint32(stack[1]))
		l.random.Read(b)
		return fault(ok)
	case "args_sizes_get":
		return fault(mem.WriteUint32Le(uint32(stack[0]), 0) && mem.WriteUint32Le(uint32(stack[1]), 0))
	case "fd_prestat_get", "fd_close":
		return errBadFile
	case "sched_yield":
		return 0
	case "fd_write":
		return fdWrite(mem, uint32(stack[1]), uint32(stack[2]), uint32(stack[3]))
	}
	return errNoSys
}

// fdWrite takes what is written and forgets it.
func fdWrite(mem api.Memory, vecs, count, written uint32) uint64 {
	if count > 1024 {
		return errInvalid
	}
	entries, ok := mem.Read(vecs, count*8)
	total := uint32(0)
	for r := bytes.NewReader(entries); ok && r.Len() > 0; {
		var v [2]uint32
		_ = binary.Read(r, binary.LittleEndian, &v)
		_, ok = mem.Read(v[0], v[1])
		total += v[1]
	}
	if !ok || !mem.WriteUint32Le(written, total) {
		return errFault
	}
	return 0
}
