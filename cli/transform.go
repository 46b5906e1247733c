package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/pipeline"
	"github.com/wasmill/wasmill/host/sandbox"
)

func transformCommand(e *Env) *ucli.Command {
	return &ucli.Command{
		Name:  "transform",
		Usage: "look at a transform's module, and try it out",
		Subcommands: []*ucli.Command{
			{
				Name: "inspect", Usage: "show what a module is, without running it", ArgsUsage: "MODULE.wasm",
				Flags:  append(engineFlags()[:4:4], outputFlag()),
				Action: func(c *ucli.Context) error { return e.inspect(c) },
			},
			{
				Name: "check", Usage: "start a module and feed it records of every kind, twice and on two engines", ArgsUsage: "MODULE.wasm",
				Description: "Looks whether it keeps to the contract, comes to the same every time, and takes odd records. Exits with 3 when a check fails.",
				Flags: append(checkFlags(),
					&ucli.DurationFlag{Name: "timeout", Value: time.Minute, Usage: "how long it may take in all"}),
				Action: func(c *ucli.Context) error { return e.checkApart(c) },
			},
		},
		Action: func(c *ucli.Context) error {
			if c.NArg() > 0 {
				return unknownCommand(c.Command.HelpName, c.Args().First(), c.Command.Subcommands)
			}
			return usagef(c, "name what to do: inspect or check")
		},
	}
}

// moduleOf reads the module that a command names.
func (e *Env) moduleOf(c *ucli.Context) (sandbox.Binary, error) {
	if c.NArg() != 1 {
		return sandbox.Binary{}, usagef(c, "one module, not %d arguments", c.NArg())
	}
	b, err := pipeline.ReadBinary(e.Files, c.Args().First())
	if f, ok := errors.AsType[*fault.Error](err); ok && f.ErrCode == pipeline.CodeModuleMissing {
		f.WayOut = "name a module: a file that a transform was built to"
	}
	return b, err
}

// moduleShown is what inspect prints as JSON.
type moduleShown struct {
	Module   string        `json:"module"`
	Digest   string        `json:"digest"`
	Size     int           `json:"size"`
	Sidecar  int           `json:"sidecarSize,omitempty"`
	Engine   string        `json:"engine"`
	Memory   memoryShown   `json:"memory"`
	Limits   limitsShown   `json:"defaultLimits"`
	Imports  []string      `json:"imports"`
	Exports  []string      `json:"exports"`
	Manifest manifestShown `json:"manifest"`
}

type memoryShown struct {
	Min int64 `json:"min"`           // bytes
	Max int64 `json:"max,omitempty"` // bytes, when the module declares it
}

type limitsShown struct {
	Memory     int64  `json:"memory"` // bytes
	Depth      int    `json:"depth"`  // calls
	FuelCall   uint64 `json:"fuelCall"`
	FuelRecord uint64 `json:"fuelRecord"`
	Output     int64  `json:"output"`
}

type manifestShown struct {
	Default bool        `json:"default"` // no manifest was found
	ABI     int         `json:"abi,omitempty"`
	Name    string      `json:"name,omitempty"`
	Version string      `json:"version,omitempty"`
	Inputs  []portShown `json:"inputs"`
	Outputs []portShown `json:"outputs"`
}

type portShown struct {
	Name    string   `json:"name"`
	Content string   `json:"content,omitempty"`
	Fields  []string `json:"fields,omitempty"`
}

// pageSize is a page of WebAssembly memory in bytes.
const pageSize = 64 << 10

func (e *Env) inspect(c *ucli.Context) (err error) {
	output, err := outputOf(c)
	if err != nil {
		return err
	}
	b, err := e.moduleOf(c)
	if err != nil {
		return err
	}
	ctx := c.Context
	eng, err := e.newEngine(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, eng.Close(context.WithoutCancel(ctx))) }()
	m, err := eng.Compile(ctx, b)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close(context.WithoutCancel(ctx))) }()
	shown := showModule(b, m.Info(), eng.Kind())
	if output == outputJSON {
		return e.printJSON(shown)
	}
	return shown.page().print(e.Stdout)
}

func showModule(b sandbox.Binary, info *sandbox.Info, kind string) *moduleShown {
	s := &moduleShown{
		Module: b.Name, Digest: info.Digest, Size: info.Size, Sidecar: len(b.Sidecar), Engine: kind,
		Memory:  memoryShown{int64(info.MemoryMin) * pageSize, int64(info.MemoryMax) * pageSize},
		Limits:  limitsShown{sandbox.DefaultMemory, sandbox.DefaultDepth, abi.DefaultFuelCall, abi.DefaultFuelChunk, abi.DefaultOutput},
		Imports: append([]string{}, info.Imports...), Exports: append([]string{}, info.Exports...),
		Manifest: manifestShown{Default: info.Default, Inputs: []portShown{}, Outputs: []portShown{}},
	}
	if !info.Default {
		s.Manifest.ABI, s.Manifest.Name, s.Manifest.Version = info.Manifest.ABI, info.Manifest.Name, info.Manifest.Version
	}
	for _, p := range info.Manifest.Inputs {
		s.Manifest.Inputs = append(s.Manifest.Inputs, portShown{p.Name, p.Content, p.Fields})
	}
	for _, p := range info.Manifest.Outputs {
		s.Manifest.Outputs = append(s.Manifest.Outputs, portShown{p.Name, p.Content, nil})
	}
	return s
}

func (s *moduleShown) page() *page {
	p := &page{}
	p.row("module", s.Module)
	p.row("digest", "sha256:"+s.Digest)
	size := plural(int64(s.Size), "byte")
	if s.Sidecar > 0 {
		size += ", and " + plural(int64(s.Sidecar), "byte") + " of manifest beside it"
	}
	p.row("size", size)
	p.row("engine", s.Engine)
	memory := plural(s.Memory.Min, "byte") + " at the start"
	if s.Memory.Max > 0 {
		memory += ", declared to be at most " + thousands(s.Memory.Max)
	}
	p.row("memory", memory)
	p.row("limits", fmt.Sprintf("where the job says nothing: memory %s, depth %s, fuel %s a call and %s a record, output %s a lane",
		plural(s.Limits.Memory, "byte"), plural(int64(s.Limits.Depth), "call"), thousands(int64(s.Limits.FuelCall)), thousands(int64(s.Limits.FuelRecord)), plural(s.Limits.Output, "byte")))
	if m := &s.Manifest; m.Default {
		p.row("manifest", "no manifest found (looked for a section `wasmill` and for FILE.wasm.json): defaults")
	} else {
		p.row("manifest", m.Name+" "+m.Version)
	}
	p.line("")
	for _, port := range s.Manifest.Inputs {
		p.row("input", port.Name, orNone(port.Content), fmt.Sprint(port.Fields))
	}
	for _, port := range s.Manifest.Outputs {
		p.row("output", port.Name, orNone(port.Content), "")
	}
	p.line("")
	for _, i := range s.Imports {
		p.line("import %s", i)
	}
	for _, x := range s.Exports {
		p.line("export %s", x)
	}
	return p
}
