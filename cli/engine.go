package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	ucli "github.com/urfave/cli/v2"

	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sandbox"
	"github.com/wasmill/wasmill/host/sandbox/apart"
)

// CodeNoCompiler is the code of a machine that only interprets where --require-compiler forbids it.
const CodeNoCompiler = "engine.compiler"

// compileFlags are those of every command that has a module compiled.
func compileFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.StringFlag{Name: "cache", Usage: "`FOLDER` of compiled modules; default: wasmill in the user's cache folder; \"none\" for none"},
		&ucli.BoolFlag{Name: "compile-here", Usage: "compile modules in this process, without limits, not in a child process: only for modules that you trust"},
	}
}

// engineFlags are those of every command that runs modules for a job.
func engineFlags() []ucli.Flag {
	return append(compileFlags(),
		&ucli.BoolFlag{Name: "interpreter", Usage: "interpret modules instead of compiling them"},
		&ucli.BoolFlag{Name: "require-compiler", Usage: "fail where modules could only be interpreted, which is 20 to 80 times slower; also $" + requireVariable},
		&ucli.IntFlag{Name: "workers", Usage: "lanes that run at a time; 0 is one a processor. It changes no output", Action: workersNotNegative},
	)
}

// newEngine starts the engine that modules run on.
func (e *Env) newEngine(c *ucli.Context) (sandbox.Engine, error) {
	required, by, err := e.compilerRequired(c)
	if err != nil {
		return nil, err
	}
	if c.Bool("interpreter") && required {
		return nil, usagef(c, "--interpreter and %s exclude each other", by)
	}
	eng, err := e.engineOf(c, c.Bool("interpreter"))
	if err != nil || !required {
		return eng, err
	}
	if err := requireCompiler(eng.Kind(), runtime.GOOS+"/"+runtime.GOARCH); err != nil {
		return nil, errors.Join(err, eng.Close(context.WithoutCancel(c.Context)))
	}
	return eng, nil
}

// requireVariable is the place of --require-compiler in the environment, for images and service files.
const requireVariable = "WASMILL_REQUIRE_COMPILER"

// compilerRequired says whether modules must be compiled, and what says so: the flag, or else the environment. Commands
// without the flag look at modules and run no job, so they do not ask.
func (e *Env) compilerRequired(c *ucli.Context) (required bool, by string, err error) {
	text := e.getenv(requireVariable)
	if c.IsSet("require-compiler") || text == "" || flagNamed(c.Command.Flags, "require-compiler") == nil {
		return c.Bool("require-compiler"), "--require-compiler", nil
	}
	required, err = strconv.ParseBool(text)
	if err != nil {
		return false, "", usagef(c, "$%s %q: it is true or false", requireVariable, text)
	}
	return required, "$" + requireVariable, nil
}

// requireCompiler refuses an engine that interprets.
func requireCompiler(kind, platform string) error {
	if kind == sandbox.KindCompiler {
		return nil
	}
	return fault.New(CodeNoCompiler, platform, errors.New("modules would be interpreted: there is no compiler for this machine, or it may not make code to run"),
		"run it on linux or macOS with amd64 (SSE 4.1) or arm64, where processes may map memory as code; or do without --require-compiler")
}

// engineOf starts an engine of either kind.
func (e *Env) engineOf(c *ucli.Context, interpreter bool) (sandbox.Engine, error) {
	config := sandbox.Config{Interpreter: interpreter, CacheDir: cacheDir(c.String("cache"))}
	if !c.Bool("compile-here") {
		program, err := ownProgram()
		if err != nil {
			return nil, err
		}
		config.Apart = apart.New(apart.Config{
			Program: program, Args: []string{os.Args[0], compileName}, Limits: apart.DefaultLimits, Files: e.Files,
		})
	}
	eng, err := sandbox.New(config)
	if f, ok := errors.AsType[*fault.Error](err); ok && f.ErrCode == sandbox.CodeCache {
		f.WayOut += "; --cache FOLDER names another one, --cache none does without"
	}
	return eng, err
}

// cacheDir is the folder that --cache names.
func cacheDir(flag string) string {
	switch flag {
	case "none":
		return ""
	case "":
		user, err := os.UserCacheDir()
		if err != nil {
			return "" // no home, no cache
		}
		return filepath.Join(user, "wasmill", "modules")
	}
	return flag
}

// ownProgram is the file of this program, for a child that must be the same one, also after an update has replaced it on
// the disk.
func ownProgram() (string, error) {
	const linux = "/proc/self/exe"
	if _, err := os.Stat(linux); err == nil && runtime.GOOS == "linux" {
		return linux, nil
	}
	program, err := os.Executable()
	if err != nil {
		return "", fault.New(sandbox.CodeCompileStart, "wasmill", fmt.Errorf("find the program's own file: %w", err), "start it by its full path")
	}
	return program, nil
}

// engineInfo is the gauge that says how modules run.
func engineInfo(kind string) prometheus.Collector {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: "wasmill", Name: "engine_info", Help: "Always 1; the label says whether modules are compiled or interpreted.",
		ConstLabels: prometheus.Labels{"kind": kind},
	})
	info.Set(1)
	return info
}

// workersNotNegative refuses a number of lanes that there cannot be.
func workersNotNegative(c *ucli.Context, n int) error {
	if n < 0 {
		return usagef(c, "--workers %d: it is 0, for one a processor, or more", n)
	}
	return nil
}
