package sandbox

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/sandbox/binary"
	"github.com/wasmill/wasmill/host/sandbox/rewriter"
)

// failure turns the error of a guest's call into what it means: a *Failure when the guest did wrong, the host's trouble
// otherwise.
func (in *instance) failure(err error) error {
	in.failed = true
	stack := in.program.module.trace(err.Error())
	if in.stopped != nil {
		return stoppedBy(in.stopped, stack)
	}
	name, text, ok := trapOf(err)
	if !ok {
		return fmt.Errorf("run guest: %w", err)
	}
	if name == abi.TrapMemory || name == abi.TrapUnreachable {
		text += in.memoryFull()
	}
	return &Failure{Trap: name, Text: text, Progress: abi.NoIndex, Stack: stack}
}

// memoryFull says so when the guest has all the memory it can have, or was refused more: what it does then comes of that,
// and no trap tells.
func (in *instance) memoryFull() string {
	limit := in.program.options.Limits.Memory
	switch {
	case in.region == nil:
		return ""
	case int64(len(in.memory())) >= limit:
		return fmt.Sprintf("; memory is at its limit of %d bytes (limits.memory)", limit)
	case in.region.refused:
		return fmt.Sprintf("; it was refused more memory than its limit of %d bytes (limits.memory)", limit)
	}
	return ""
}

// stoppedBy is what a host function ended the guest for.
func stoppedBy(why error, stack []string) error {
	var violation *abi.Violation
	if errors.As(why, &violation) {
		return &Failure{Trap: violation.Trap, Text: violation.Detail, Progress: abi.NoIndex, Stack: stack}
	}
	var failed *Failure
	if errors.As(why, &failed) {
		failed.Stack = stack
		return failed
	}
	return why
}

const wasmError = "wasm error: "

// traceMark stands between what happened and the stack in wazero's errors.
const traceMark = "\nwasm stack trace:\n\t"

// trapOf reads which trap an error of wazero is. Its error values are internal to it, so the text is all there is: what
// stands before the stack, behind what an instantiation puts before it, which may hold names that the module chose. A Go
// panic inside a host function is none. Nor is a full stack: an engine has its own, and the count of depth ends every guest
// before that.
func trapOf(err error) (abi.TrapName, string, bool) {
	var goError runtime.Error
	if errors.As(err, &goError) {
		return "", "", false
	}
	what := err.Error()
	if at := strings.LastIndex(what, traceMark); at >= 0 {
		what = what[:at]
	}
	at := strings.LastIndex(what, wasmError)
	if at < 0 {
		return "", "", false
	}
	what = what[at+len(wasmError):]
	name, ok := trapNames(what)
	return name, what, ok
}

// trapNames maps wazero's texts, in the order of its list.
func trapNames(text string) (abi.TrapName, bool) {
	switch text {
	case "invalid conversion to integer":
		return abi.TrapConversion, true
	case "integer overflow":
		return abi.TrapIntegerOverflow, true
	case "integer divide by zero":
		return abi.TrapDivide, true
	case "unreachable":
		return abi.TrapUnreachable, true
	case "out of bounds memory access":
		return abi.TrapMemory, true
	case "invalid table access":
		return abi.TrapTable, true
	case "indirect call type mismatch":
		return abi.TrapIndirect, true
	}
	return "", false
}

// trace makes readable lines of the stack in an error of wazero, innermost function first. Names come from the module's
// name section, or from its exports.
func (m *module) trace(text string) []string {
	var stack []string
	for _, f := range framesOf(text) {
		if f.text == rewriter.Module+"."+rewriter.Yield {
			continue
		}
		var own bool
		if f.own {
			if f.index, own = m.rewritten.Index(f.index); !own {
				continue // it was added by the rewriter
			}
			f.offset = m.rewritten.Place(f.offset)
		}
		switch {
		case !f.own:
			stack = append(stack, f.text)
		case !f.hasPlace:
			stack = append(stack, m.funcName(f.index))
		default:
			stack = append(stack, m.frames(m.funcName(f.index), f.offset)...)
		}
	}
	return stack[:min(len(stack), maxFrames)]
}

// funcName is a name for messages of a function.
func (m *module) funcName(index uint32) string {
	name := m.names()[index]
	for _, e := range m.form.Exports {
		if name == "" && e.Kind == binary.KindFunc && e.Index == index {
			name = e.Name
		}
	}
	if name == "" {
		return fmt.Sprintf("function %d", index)
	}
	return abi.EscapeText([]byte(name), maxShown)
}
