package apart

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/cpu"

	"github.com/wasmill/wasmill/host/sandbox"
	"github.com/wasmill/wasmill/host/sandbox/rewriter"
)

// wazeroPath is the path of the engine's Go module.
const wazeroPath = "github.com/tetratelabs/wazero"

// circumstances is all that a verdict depends on besides the bytes and the kind of engine: the compiler and what it looks
// at of the processor, the Go runtime that its code calls into, and the limits.
func circumstances(l Limits) string {
	engine := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path != wazeroPath {
				continue
			}
			if dep.Replace != nil {
				dep = dep.Replace
			}
			engine = dep.Path + " " + dep.Version + " " + dep.Sum
		}
	}
	x86 := &cpu.X86
	return fmt.Sprintf("wasmill verdict %d\nwazero %s\ngo %s %s/%s\ncpu sse4.1=%t bmi1=%t bmi2=%t popcnt=%t atomics=%t\ncost %d\nlimits %d %d %d\n",
		verdictVersion, engine, runtime.Version(), runtime.GOOS, runtime.GOARCH,
		x86.HasSSE41, x86.HasBMI1, x86.HasBMI2, x86.HasPOPCNT, cpu.ARM64.HasATOMICS,
		rewriter.CostVersion, l.CPU, l.Memory, l.Time)
}

// key is the name that the verdict on some work is kept under, 64 hex digits.
func key(circumstances string, w *sandbox.Work) string {
	digest := sha256.Sum256(w.Wasm)
	sum := sha256.Sum256(fmt.Appendf(nil, "%skind %s\nmodule %x\n", circumstances, w.Kind, digest))
	return hex.EncodeToString(sum[:])
}
