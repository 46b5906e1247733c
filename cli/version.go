package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"text/tabwriter"

	ucli "github.com/urfave/cli/v2"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/job"
	"github.com/wasmill/wasmill/host/sandbox"
)

func versionCommand(e *Env) *ucli.Command {
	return &ucli.Command{
		Name:   "version",
		Usage:  "print the version of the program, of its formats and of its engine",
		Flags:  []ucli.Flag{outputFlag()},
		Action: func(c *ucli.Context) error { return e.version(c) },
	}
}

// versions is what version prints as JSON.
type versions struct {
	Version   string `json:"version"`
	Revision  string `json:"revision,omitempty"` // of the source code
	Modified  bool   `json:"modified,omitempty"` // the source code differed from it
	Time      string `json:"time,omitempty"`
	Go        string `json:"go"`
	Platform  string `json:"platform"`
	Engine    string `json:"engine"` // compiler or interpreter
	ABI       int    `json:"abi"`
	Semantics int    `json:"semantics"`
	Job       string `json:"job"`
}

func (e *Env) version(c *ucli.Context) error {
	output, err := outputOf(c)
	if err != nil {
		return err
	}
	v := buildVersions()
	if v.Engine, err = engineKind(c.Context); err != nil {
		return err
	}
	if output == outputJSON {
		enc := json.NewEncoder(e.Stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	}
	source := v.Revision
	if v.Modified {
		source += " (modified)"
	}
	w := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "wasmill\t%s\n", v.Version)
	if source != "" {
		fmt.Fprintf(w, "source\t%s\n", source)
	}
	fmt.Fprintf(w, "go\t%s %s\n", v.Go, v.Platform)
	fmt.Fprintf(w, "engine\t%s\n", v.Engine)
	fmt.Fprintf(w, "abi\t%d\nsemantics\t%d\njob file\t%s\n", v.ABI, v.Semantics, v.Job)
	return w.Flush()
}

// buildVersions returns what the build knows of itself. Engine is empty: finding it out starts one.
func buildVersions() versions {
	v := versions{
		Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		ABI: abi.Version, Semantics: engine.Semantics, Job: job.APIVersion,
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		case "vcs.time":
			v.Time = s.Value
		}
	}
	return v
}

// engineKind starts an engine to see what it is: the interpreter stands in, without a word, where machine code is not
// allowed.
func engineKind(ctx context.Context) (string, error) {
	eng, err := sandbox.New(sandbox.Config{})
	if err != nil {
		return "", err
	}
	return eng.Kind(), eng.Close(ctx)
}
