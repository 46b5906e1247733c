package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sandbox/binary"
	"github.com/wasmill/wasmill/host/sandbox/debuginfo"
	"github.com/wasmill/wasmill/host/sandbox/rewriter"
)

// Config says how an engine works. It changes how fast modules run, never what they do.
type Config struct {
	// CacheDir is the folder of compiled code, "" for none. Whoever can write to it can run native code in this
	// process, so it is made with mode 0700 and refused when anybody else may use it.
	CacheDir string
	// Interpreter asks for the interpreter where the compiler would run.
	Interpreter bool
	// Apart has modules compiled where they can harm nobody, before this process compiles them. Nil is for modules of known
	// origin: a compiler can be made to take all memory and minutes.
	Apart Apart
}

// maxMemory is the most memory a guest can be given, in pages: 2 GiB, well below the addresses at which 32-bit sums wrap.
const maxMemory = 32768

// engine is an Engine on wazero.
type engine struct {
	config  Config
	kind    string
	runtime wazero.Runtime
	cache   wazero.CompilationCache

	mu    sync.Mutex
	plain wazero.Runtime // without a cache, made when the cache fails
}

// New makes an engine. Its error is a fault with CodeCache, or the host's trouble.
func New(config Config) (Engine, error) {
	e := &engine{config: config}
	if config.CacheDir != "" {
		if err := privateDir(config.CacheDir); err != nil {
			return nil, err
		}
		cache, err := wazero.NewCompilationCacheWithDir(config.CacheDir)
		if err != nil {
			return nil, fault.New(CodeCache, config.CacheDir, fmt.Errorf("open compile cache: %w", err), "name a folder on a local disk that you own")
		}
		e.cache = cache
	}
	ctx := context.Background()
	e.runtime = e.newRuntime(ctx, e.cache)
	probe := e.newRuntime(ctx, nil)
	kind, err := kindOf(ctx, probe)
	if err = errors.Join(err, probe.Close(ctx)); err != nil {
		return nil, errors.Join(fmt.Errorf("start engine: %w", err), e.Close(ctx))
	}
	e.kind = kind
	return e, nil
}

// newRuntime makes a runtime. It does not ask for WithCloseOnContextDone: that makes loops up to 30 times slower, and a
// limit by wall clock does not replay. It takes debug information, which is placeSections and nothing else.
func (e *engine) newRuntime(ctx context.Context, cache wazero.CompilationCache) wazero.Runtime {
	config := wazero.NewRuntimeConfig()
	if e.config.Interpreter {
		config = wazero.NewRuntimeConfigInterpreter()
	}
	config = config.WithCoreFeatures(api.CoreFeaturesV2).WithMemoryLimitPages(maxMemory).WithDebugInfoEnabled(true)
	if cache != nil {
		config = config.WithCompilationCache(cache)
	}
	return wazero.NewRuntimeWithConfig(ctx, config)
}

// kindOf finds out what a runtime really uses, which wazero decides by platform and does not tell: the type of a function
// of a smallest module names it.
func kindOf(ctx context.Context, rt wazero.Runtime) (string, error) {
	smallest := []byte("\x00asm\x01\x00\x00\x00" + "\x01\x04\x01\x60\x00\x00" + "\x03\x02\x01\x00" + "\x07\x05\x01\x01f\x00\x00" + "\x0a\x04\x01\x02\x00\x0b")
	m, err := rt.InstantiateWithConfig(ctx, smallest, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return "", err
	}
	kind := "compiler"
	if strings.Contains(fmt.Sprintf("%T", m.ExportedFunction("f")), "interpreter") {
		kind = "interpreter"
	}
	return kind, m.Close(ctx)
}

// privateDir makes a folder that only its owner can use, or checks that it is one.
func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fault.New(CodeCache, dir, fmt.Errorf("make compile cache: %w", err), "name a folder that you may write to")
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fault.New(CodeCache, dir, fmt.Errorf("look at compile cache: %w", err), "name a folder that you may write to")
	}
	if uid, foreign := foreignOwner(info); foreign {
		return fault.New(CodeCache, dir, fmt.Errorf("the compile cache belongs to another user (uid %d)", uid),
			"it holds code that runs in this process: name a folder of your own")
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fault.New(CodeCache, dir, fmt.Errorf("the compile cache is open to others (mode %04o)", info.Mode().Perm()),
			"it holds code that runs in this process: empty it and chmod it to 700, or name another folder")
	}
	return nil
}

func (e *engine) Kind() string { return e.kind }

// Compile checks a module and compiles it. What the module does wrong is a *fault.Error.
func (e *engine) Compile(ctx context.Context, b Binary) (Module, error) {
	form, err := binary.Parse(b.Wasm)
	if err != nil {
		return nil, refuseForm(b.Name, err)
	}
	manifest, err := readManifest(b, form)
	if err != nil {
		return nil, err
	}
	if err := check(b.Name, form, manifest); err != nil {
		return nil, err
	}
	m := &module{name: b.Name, form: form, info: infoOf(b, form, manifest), capturable: form.Capturable(), names: sync.OnceValue(form.FuncNames)}
	m.lines = sync.OnceValue(func() *debuginfo.Info { return debuginfo.Read(form.Customs) })
	m.rewritten, err = rewriter.Rewrite(form, rewriter.Options{
		MaxPages: maxMemory, MaxTable: binary.MaxTable, KeepData: !m.capturable, Offsets: debuginfo.Has(form.Customs),
	})
	if errors.Is(err, rewriter.ErrTooLarge) {
		return nil, fault.New(CodeTooLarge, b.Name, err, largeWayOut)
	}
	if err != nil {
		return nil, fault.New(CodeExport, b.Name, err, "give the export another name")
	}
	code := m.withPlaces(m.rewritten.Wasm)
	if err := e.apart(ctx, b.Name, code); err != nil {
		return nil, err
	}
	m.runtime, m.compiled, err = e.compile(ctx, code)
	if err != nil {
		return nil, fault.New(CodeInvalid, b.Name, fmt.Errorf("the module is not valid: %w", err), "build it again with a current toolchain for WebAssembly 2.0")
	}
	if err := m.buildHost(ctx); err != nil {
		return nil, errors.Join(err, m.Close(ctx))
	}
	return m, nil
}

// compile compiles with the cache, and without it when that fails: a cache that is full, read-only or damaged costs time
// and must not cost the job.
func (e *engine) compile(ctx context.Context, wasm []byte) (wazero.Runtime, wazero.CompiledModule, error) {
	compiled, err := compileSafely(ctx, e.runtime, wasm)
	if err == nil || e.cache == nil {
		return e.runtime, compiled, err
	}
	e.mu.Lock()
	if e.plain == nil {
		e.plain = e.newRuntime(ctx, nil)
	}
	rt := e.plain
	e.mu.Unlock()
	compiled, err = compileSafely(ctx, rt, wasm)
	return rt, compiled, err
}

// compileSafely turns a panic of the compiler into an error: a module is input, and input must not end the process.
func compileSafely(ctx context.Context, rt wazero.Runtime, wasm []byte) (compiled wazero.CompiledModule, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the compiler failed: %.200s", fmt.Sprint(r))
		}
	}()
	return rt.CompileModule(ctx, wasm)
}

// Close ends the engine and all that came from it.
func (e *engine) Close(ctx context.Context) error {
	e.mu.Lock()
	plain := e.plain
	e.mu.Unlock()
	err := e.runtime.Close(ctx)
	if plain != nil {
		err = errors.Join(err, plain.Close(ctx))
	}
	if e.cache != nil {
		err = errors.Join(err, e.cache.Close(ctx))
	}
	if err != nil {
		return fmt.Errorf("close engine: %w", err)
	}
	return nil
}
