package job

import (
	"fmt"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/abi"
)

// TestUpdatesIntoStockTransforms: a stock transform that would take updates for further records is refused, whatever lies
// between; where its input is meant for them, and behind outputs of records, it is not.
func TestUpdatesIntoStockTransforms(t *testing.T) {
	const text = `apiVersion: wasmill/v1
kind: Job
metadata: {name: chain}
spec:
  checkpoint: ./checkpoint
  sources: [{name: a, files: {path: ./in, format: jsonl}}]
  transforms:
    - {name: count, from: [{input: a, keyBy: {json: /x}}], module: ./count.wasm}
    - {name: thin, from: [count], module: ./thin.wasm}
    - {name: next, from: [%s], module: %q, config: {%s}}
  sinks: [{name: out, from: [next], mode: changelog, stdout: {format: jsonl}}]
`
	modules := map[string]ModuleFacts{
		"count": {Stateful: true, Manifest: &abi.Manifest{
			Inputs: []abi.InputPort{{Name: "in"}}, Outputs: []abi.OutputPort{{Name: "out", Updates: true}, {Name: "final"}},
		}},
		"thin": {Manifest: &abi.Manifest{Inputs: []abi.InputPort{{Name: "in"}}, Outputs: []abi.OutputPort{{Name: "out"}}}},
	}
	env := testEnv()
	env.Stock = []string{"aggregate", "dedup", "filter", "join", "lookup", "map", "session", "sliding", "top", "tumbling"}
	keyed := func(names ...string) string {
		for i := range names {
			names[i] = "{input: " + names[i] + ", keyBy: {json: /x}}"
		}
		return strings.Join(names, ", ")
	}
	for _, tt := range []struct{ from, module, config, want string }{
		{keyed("count"), "tumbling", "size: 1s", "would count and sum"},
		{keyed("thin"), "sliding", "size: 1s", "thin passes on the updates of count"},
		{keyed("count"), "session", "gap: 1s", "would count and sum"},
		{keyed("count"), "aggregate", "aggregates: []", "takes them with input: updates and id: <pointer>"},
		{keyed("count"), "aggregate", "input: records", "would count and sum"},
		{keyed("count"), "aggregate", "input: updates, id: /x", ""},
		{keyed("count"), "top", "order: /n", "would rank each"},
		{keyed("count"), "dedup", "", "would pass the first"},
		{keyed("a", "count"), "join", "", "from[1]: count gives updates"},
		{keyed("count", "a"), "lookup", "", ""},
		{keyed("a", "count"), "lookup", "", "from[1]: count gives updates"},
		{"count", "filter", "where: /n", "would drop those"},
		{"count", "map", "where: /n", "would drop those"},
		{"count", "map", "fields: [/n]", ""},
		{keyed("count.final"), "tumbling", "size: 1s", ""},
		{keyed("a"), "tumbling", "size: 1s", ""},
	} {
		j, err := Parse("job.yaml", fmt.Appendf(nil, text, tt.from, "stock:"+tt.module, tt.config), env)
		if err != nil {
			t.Fatal(err)
		}
		err = j.CheckModules(modules)
		if tt.want == "" && err == nil {
			continue
		}
		if tt.want == "" || err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "stock:"+tt.module) {
			t.Errorf("%s into %s {%s}: %v, want %q", tt.from, tt.module, tt.config, err, tt.want)
		}
	}
}
