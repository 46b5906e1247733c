package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/job"
	"github.com/wasmill/wasmill/host/sandbox"
)

// moduleShown is what inspect prints as JSON.
type moduleShown struct {
	Module   string        `json:"module"`
	Digest   string        `json:"digest"`
	Image    string        `json:"image,omitempty"` // what the start-up left, when it was run
	StartUp  *startShown   `json:"startUp,omitempty"`
	Size     int           `json:"size"`
	Sidecar  int           `json:"sidecarSize,omitempty"`
	Code     int           `json:"codeSize"`
	Data     int           `json:"dataSize"`
	Compiled int           `json:"rewrittenSize"` // what the engine compiles
	Engine   string        `json:"engine"`
	Captured bool          `json:"captured"`
	Why      string        `json:"whyNotCaptured,omitempty"`
	Memory   memoryShown   `json:"memory"`
	Limits   limitsShown   `json:"defaultLimits"`
	Form     []formShown   `json:"form"`
	WASI     []wasiShown   `json:"wasi"`
	Imports  []string      `json:"imports"`
	Exports  []string      `json:"exports"`
	Manifest manifestShown `json:"manifest"`
}

// startShown is what the start-up took.
type startShown struct {
	Memory   int64  `json:"memory"` // bytes that every instance begins with
	Fuel     uint64 `json:"fuel"`   // of the step that used most
	MostFuel uint64 `json:"fuelMost"`
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
	Log        int64  `json:"log"`
}

// formShown is one limit of a module's form.
type formShown struct {
	Name string `json:"name"`
	Have int64  `json:"have"`
	Most int64  `json:"most"`
}

type wasiShown struct {
	Name        string `json:"name"`
	Implemented bool   `json:"implemented"`
}

type manifestShown struct {
	Default bool        `json:"default"` // no manifest was found
	ABI     int         `json:"abi,omitempty"`
	Name    string      `json:"name,omitempty"`
	Version string      `json:"version,omitempty"`
	Inputs  []portShown `json:"inputs"`
	Outputs []portShown `json:"outputs"`
	// Tables hold its state, which it can have in a stage with keys alone.
	Tables   []job.StateTable `json:"tables,omitempty"`
	Stateful bool             `json:"stateful"` // it imports the functions of state
}

type portShown struct {
	Name    string   `json:"name"`
	Content string   `json:"content,omitempty"`
	Fields  []string `json:"fields,omitempty"`
	Updates bool     `json:"updates,omitempty"` // its records take the place of earlier ones of their key
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
	if c.IsSet(limitsName) && !c.Bool("start") {
		return usagef(c, "--limits goes with --start: a module that is only looked at has none")
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
	shown := showModule(b, m.Info(), sandbox.ShapeOf(m), eng.Kind())
	if c.Bool("start") {
		if err := e.started(c, b, m, shown); err != nil {
			return withLimits(err)
		}
	}
	if output == outputJSON {
		return e.printJSON(shown)
	}
	return shown.page().print(e.Stdout)
}

// started starts a module, and shows what that took and left.
func (e *Env) started(c *ucli.Context, b sandbox.Binary, m sandbox.Module, shown *moduleShown) error {
	config, err := e.configOf(c)
	if err != nil {
		return err
	}
	limits, err := limitsOf(c, b)
	if err != nil {
		return err
	}
	p, err := m.Start(c.Context, sandbox.Options{Transform: "inspect", Config: config, Limits: limits})
	if err != nil {
		return err
	}
	shown.Image = "sha256:" + p.Image()
	if s := sandbox.StartUpOf(p); s != nil {
		shown.StartUp = &startShown{s.Memory, s.Fuel, s.MostFuel}
	}
	return p.Close(context.WithoutCancel(c.Context))
}

func showModule(b sandbox.Binary, info *sandbox.Info, shape *sandbox.Shape, kind string) *moduleShown {
	s := &moduleShown{
		Module: b.Name, Digest: "sha256:" + info.Digest, Size: info.Size, Sidecar: len(b.Sidecar), Engine: kind,
		Code: shape.Code, Data: shape.Data, Compiled: shape.Rewritten, Captured: shape.NotCaptured == "", Why: shape.NotCaptured,
		Memory: memoryShown{int64(info.MemoryMin) * pageSize, int64(info.MemoryMax) * pageSize},
		Limits: limitsShown{sandbox.DefaultMemory, sandbox.DefaultDepth, abi.DefaultFuelCall, abi.DefaultFuelChunk, abi.DefaultOutput, sandbox.DefaultLog},
		Form:   []formShown{}, WASI: []wasiShown{}, Imports: append([]string{}, info.Imports...), Exports: append([]string{}, info.Exports...),
		Manifest: manifestShown{Default: info.Default, Inputs: []portShown{}, Outputs: []portShown{}},
	}
	if strings.HasPrefix(b.Name, stockPrefix) {
		s.Limits.FuelCall = job.StockFuel
	}
	for _, m := range shape.Measures {
		s.Form = append(s.Form, formShown(m))
	}
	for _, f := range shape.WASI {
		s.WASI = append(s.WASI, wasiShown(f))
	}
	if !info.Default {
		s.Manifest.ABI, s.Manifest.Name, s.Manifest.Version = info.Manifest.ABI, info.Manifest.Name, info.Manifest.Version
	}
	for _, p := range info.Manifest.Inputs {
		s.Manifest.Inputs = append(s.Manifest.Inputs, portShown{p.Name, p.Content, p.Fields, false})
	}
	for _, p := range info.Manifest.Outputs {
		s.Manifest.Outputs = append(s.Manifest.Outputs, portShown{p.Name, p.Content, nil, p.Updates})
	}
	s.Manifest.Stateful = info.Stateful
	for _, t := range info.Manifest.Tables {
		s.Manifest.Tables = append(s.Manifest.Tables, job.StateTable{Name: t.Name, Type: t.Type})
	}
	return s
}

func (s *moduleShown) page() *page {
	p := &page{}
	s.identity(p)
	p.line("")
	for _, port := range s.Manifest.Inputs {
		p.row("input", port.Name, orNone(port.Content), fmt.Sprint(port.Fields))
	}
	for _, port := range s.Manifest.Outputs {
		note := ""
		if port.Updates {
			note = "updates"
		}
		p.row("output", port.Name, orNone(port.Content), note)
	}
	for _, t := range s.Manifest.Tables {
		p.row("table", t.Name, t.Type, "")
	}
	if s.Manifest.Stateful || len(s.Manifest.Tables) > 0 {
		p.line("It keeps state: every entry of `from` needs a keyBy.")
	}
	p.line("")
	for _, f := range s.Form {
		p.row("form", f.Name, thousands(f.Have), "of "+thousands(f.Most), fmt.Sprintf("%.1f%%", 100*float64(f.Have)/float64(f.Most)))
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

// identity is what a module is, and what it is held to.
func (s *moduleShown) identity(p *page) {
	p.row("module", s.Module)
	p.row("digest", s.Digest)
	if s.Image != "" {
		p.row("image", s.Image)
	}
	if u := s.StartUp; u != nil {
		p.row("started", fmt.Sprintf("memory %s, fuel %s of %s a step", plural(u.Memory, "byte"), thousands(int64(u.Fuel)), thousands(int64(u.MostFuel))))
	}
	size := plural(int64(s.Size), "byte")
	if s.Sidecar > 0 {
		size += ", and " + plural(int64(s.Sidecar), "byte") + " of manifest beside it"
	}
	p.row("size", size)
	p.row("parts", fmt.Sprintf("code %s, data %s, rewritten for the engine %s", plural(int64(s.Code), "byte"), thousands(int64(s.Data)), thousands(int64(s.Compiled))))
	p.row("engine", s.Engine)
	if s.Captured {
		p.row("start-up", "runs once; every instance begins with what it left")
	} else {
		p.row("start-up", "runs again for every instance: it has "+s.Why)
	}
	memory := plural(s.Memory.Min, "byte") + " at the start"
	if s.Memory.Max > 0 {
		memory += ", declared to be at most " + thousands(s.Memory.Max)
	}
	p.row("memory", memory)
	p.row("limits", fmt.Sprintf("where the job says nothing: memory %s, depth %s, fuel %s a call and %s a record, output %s a lane, log %s",
		plural(s.Limits.Memory, "byte"), plural(int64(s.Limits.Depth), "call"), thousands(int64(s.Limits.FuelCall)), thousands(int64(s.Limits.FuelRecord)),
		plural(s.Limits.Output, "byte"), plural(s.Limits.Log, "byte")))
	p.row("wasi", s.wasi())
	if m := &s.Manifest; m.Default {
		p.row("manifest", "no manifest found (looked for a section `wasmill` and for FILE.wasm.json): defaults")
	} else {
		p.row("manifest", m.Name+" "+m.Version)
	}
}

// wasi says what the module may ask of a system, and what it is told.
func (s *moduleShown) wasi() string {
	var answered, refused []string
	for _, f := range s.WASI {
		if f.Implemented {
			answered = append(answered, f.Name)
		} else {
			refused = append(refused, f.Name)
		}
	}
	var parts []string
	if len(answered) > 0 {
		parts = append(parts, "answered with fixed values, the same every time: "+strings.Join(answered, ", "))
	}
	if len(refused) > 0 {
		parts = append(parts, "answered with ENOSYS: "+strings.Join(refused, ", "))
	}
	if len(parts) == 0 {
		return "none imported"
	}
	return strings.Join(parts, "; ")
}
