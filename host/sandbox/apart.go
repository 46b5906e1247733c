package sandbox

import (
	"context"
	"errors"
	"fmt"
)

// Codes of what comes of compiling apart.
const (
	CodeCompileLimit = "module.compile_limit" // compiling it takes too much time or memory
	CodeCompileCrash = "module.compile_crash" // the compiler broke off over it
	CodeCompileStart = "compile.start"        // the process that compiles could not be started: the host's trouble
)

// invalidWayOut is what to do about a module that the engine refuses.
const invalidWayOut = "build it again with a current toolchain for WebAssembly 2.0"

// Kinds of engines, as Engine.Kind says them.
const (
	KindCompiler    = "compiler"
	KindInterpreter = "interpreter"
)

// Apart has modules compiled where that can harm nobody, before an engine compiles them itself.
type Apart interface {
	// Compile returns nil when the work can be done in this process without danger. Any error is a fault whose place is
	// the work's name, or that of the context.
	Compile(ctx context.Context, w Work) error
}

// Work is what is to be compiled apart.
type Work struct {
	Name string // of the module, for messages
	Wasm []byte // as the engine is to compile it
	Kind string // of the engine
	// CacheDir is the folder of compiled code, where the engine will look for it; "" for none.
	CacheDir string
}

// Refuse is the fault of a module that an engine does not take, wherever it was compiled.
func Refuse(name, reason string) error {
	return refuse(CodeInvalid, name, invalidWayOut, "the module is not valid: %s", reason)
}

// apart has the work done elsewhere first, where the engine has such a place.
func (e *engine) apart(ctx context.Context, name string, wasm []byte) error {
	if e.config.Apart == nil {
		return nil
	}
	return e.config.Apart.Compile(ctx, Work{Name: name, Wasm: wasm, Kind: e.kind, CacheDir: e.config.CacheDir})
}

// Precompile compiles bytes as an engine with that configuration would, for what it leaves in the folder of compiled code.
// Refused is why the engine does not take them; an error is the host's trouble.
func Precompile(ctx context.Context, config Config, wasm []byte) (refused string, err error) {
	config.Apart = nil
	made, err := New(config)
	if err != nil {
		return "", err
	}
	e := made.(*engine)
	defer func() { err = errors.Join(err, e.Close(ctx)) }()
	compiled, wrong := compileSafely(ctx, e.runtime, wasm)
	if wrong != nil && e.cache != nil {
		// What was compiled and could not be kept is still in memory.
		compiled, wrong = compileSafely(ctx, e.runtime, wasm)
	}
	if wrong != nil {
		return wrong.Error(), nil
	}
	if err := compiled.Close(ctx); err != nil {
		return "", fmt.Errorf("close module: %w", err)
	}
	return "", nil
}
