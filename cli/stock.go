package cli

import (
	"fmt"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/pipeline"
	"github.com/wasmill/wasmill/host/sandbox"
	"github.com/wasmill/wasmill/transforms"
)

// stockPrefix is how transforms that come with wasmill are named.
const stockPrefix = "stock:"

// stockBinary finds a transform that comes with wasmill.
func stockBinary(name string) (sandbox.Binary, bool) {
	wasm, sidecar, ok := transforms.Stock(name)
	return sandbox.Binary{Name: stockPrefix + name, Wasm: wasm, Sidecar: sidecar}, ok
}

// readModule reads a module that a command names: a file, or stock:NAME.
func (e *Env) readModule(name string) (sandbox.Binary, error) {
	stock, ok := strings.CutPrefix(name, stockPrefix)
	if !ok {
		return pipeline.ReadBinary(e.Files, name)
	}
	b, known := stockBinary(stock)
	if !known {
		return b, noStock(stock)
	}
	return b, nil
}

func noStock(name string) error {
	return fault.New(pipeline.CodeStockUnknown, stockPrefix+name, fmt.Errorf("no transform called %q comes with this wasmill%s", name, didYouMean(name, transforms.StockNames(), "")),
		"`wasmill transform stock` lists them")
}

func stockCommand(e *Env) *ucli.Command {
	return &ucli.Command{
		Name: "stock", Usage: "list the transforms that come with wasmill, or describe one", ArgsUsage: "[NAME]",
		Description: "A job runs one with `module: stock:NAME`.",
		Flags:       []ucli.Flag{&ucli.BoolFlag{Name: "expressions", Usage: "describe the expressions that they take"}, outputFlag()},
		Action:      func(c *ucli.Context) error { return e.stock(c) },
	}
}

// stockShown is what `transform stock` prints as JSON of a transform.
type stockShown struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
	Digest  string `json:"digest"`
}

func (e *Env) stock(c *ucli.Context) error {
	output, err := outputOf(c)
	if err != nil {
		return err
	}
	if c.NArg() > 1 {
		return usagef(c, "one transform, not %d arguments", c.NArg())
	}
	if c.Bool("expressions") {
		if c.NArg() > 0 {
			return usagef(c, "--expressions takes no transform: all have the same")
		}
		fmt.Fprintln(e.Stdout, strings.TrimRight(transforms.ExpressionReference(), "\n"))
		return nil
	}
	if name := strings.TrimPrefix(c.Args().First(), stockPrefix); name != "" {
		if _, known := stockBinary(name); !known {
			return noStock(name)
		}
		text := strings.TrimRight(transforms.StockReference(name), "\n")
		if strings.Contains(text, "EXPRESSIONS.md") {
			text += "\n\n`wasmill transform stock --expressions` describes the expressions."
		}
		fmt.Fprintln(e.Stdout, text)
		return nil
	}
	shown := []stockShown{}
	p := &page{}
	for _, name := range transforms.StockNames() {
		b, _ := stockBinary(name)
		s := stockShown{name, transforms.StockSummary(name), "sha256:" + pipeline.DigestOf(b)}
		shown = append(shown, s)
		p.row(stockPrefix+s.Name, s.Summary)
	}
	if output == outputJSON {
		return e.printJSON(shown)
	}
	return p.print(e.Stdout)
}
