package examples

import (
	"fmt"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/rowstest"
)

// TestRowsOfTheReadme builds the binary rows of the Go SDK's README, and holds what it writes of amounts at every edge against
// the same rows in JSON: what does not fit is said, never cut.
func TestRowsOfTheReadme(t *testing.T) {
	const readme = "../abi/sdk/go/README.md"
	output := block(t, readme, "json", `{"name": "out", "rows": 1`)
	_, after, _ := strings.Cut(mustRead(t, readme), "## Binary rows")
	_, code, _ := strings.Cut(after, "```go\n")
	code, _, _ = strings.Cut(code, "```")
	manifest := `{"abi": 1, "name": "rows", "version": "1", "inputs": [{"name": "in", "fields": ["/customer", "/amount"]}], "outputs": [` + output + `]}`
	g := startGuest(t, buildGo(t, "rows", `package main

import (
	_ "embed"

	wasmill "github.com/wasmill/wasmill/abi/sdk/go"
)

//go:embed manifest.json
var text string

var (
	manifest = wasmill.Manifest(text)
	customer = manifest.Field("/customer")
	amount   = manifest.Field("/amount")
)

func init() { wasmill.Register(wasmill.Transform{Record: total}) }

func main() {}

`+code, manifest))
	schema, err := rows.RowSchema(g.program.Manifest().Outputs[0].Columns)
	if err != nil {
		t.Fatal(err)
	}
	const rest = `"at":"2023-11-14T22:13:20.000000Z","total":%s,"tags":["new",null],"prices":{"de":100},"place":{"lat":52.5,"city":null}}`
	for amount, fits := range map[string]bool{
		"null": true, "12.34": true, "-0.01": true, "9999999.99": true, "-9999999.99": true,
		"10000000.00": false, "21474836.47": false, "21474836.48": false, "-21474836.49": false, "42949672.96": false, "50000000.00": false,
		"-4294967297": false, "92233720368547758.07": false, "92233720368547758.08": false,
	} {
		got := g.batch(t, 1, 0, 1, []keyedRecord{{key: "k", value: `{"customer":"c","amount":` + amount + `}`}})
		if amount == "92233720368547758.08" { // 64 bits are not enough for the SDK either
			if len(got) != 1 || !strings.HasPrefix(got[0], "refused 0 /amount is not a number in range") {
				t.Errorf("%s: %v", amount, got)
			}
			continue
		}
		table := rows.NewTable(schema)
		err := table.Append([]byte(strings.TrimPrefix(got[0], "0 k ")))
		if !fits {
			if err == nil || !strings.Contains(err.Error(), "total: ") || !strings.Contains(err.Error(), "outside the type's range") {
				t.Errorf("%s: %v", amount, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", amount, err)
			continue
		}
		if want := fmt.Sprintf(`{"customer":"c",`+rest, amount); string(rowstest.JSON(table, 0)) != want {
			t.Errorf("%s became %s, want %s", amount, rowstest.JSON(table, 0), want)
		}
	}
}
