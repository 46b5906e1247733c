package transforms

import (
	"embed"
	"io/fs"
	"slices"
)

// stockFiles hold each stock module and what it says of itself.
//
//go:embed aggregate/aggregate.wasm aggregate/README.md
//go:embed dedup/dedup.wasm dedup/README.md
//go:embed filter/filter.wasm filter/README.md
//go:embed join/join.wasm join/README.md
//go:embed lookup/lookup.wasm lookup/README.md
//go:embed map/map.wasm map/README.md
//go:embed session/session.wasm session/README.md
//go:embed sliding/sliding.wasm sliding/README.md
//go:embed top/top.wasm top/README.md
//go:embed tumbling/tumbling.wasm tumbling/README.md
//go:embed stock/EXPRESSIONS.md
var stockFiles embed.FS

// stockSummaries are the stock transforms, in one line each.
var stockSummaries = map[string]string{
	"aggregate": "aggregates by key, as updates",
	"dedup":     "passes the first record of its kind, for ever or within a time",
	"filter":    "passes the records that a condition holds for",
	"join":      "joins two streams by key: within bounds of time, by window, or for ever",
	"lookup":    "adds to each record the newest record of a table with the same key",
	"map":       "new members, or a new object, from expressions",
	"session":   "aggregates by key and session: records that follow each other within a gap",
	"sliding":   "aggregates by key and overlapping windows of time",
	"tumbling":  "aggregates by key and window of time",
	"top":       "keeps the first records of each key in an order",
}

// StockNames are the names of the stock transforms, sorted: a job file's `module: stock:NAME`.
func StockNames() []string {
	var names []string
	for name := range stockSummaries {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Stock returns a stock transform's module, which is not to be changed, and its sidecar manifest: nil, where the module has
// it in a section of its own. False when there is no stock transform of that name.
func Stock(name string) (wasm, sidecar []byte, ok bool) {
	if _, known := stockSummaries[name]; !known {
		return nil, nil, false
	}
	wasm = stockFile(name + "/" + name + ".wasm")
	return wasm, nil, wasm != nil
}

// StockSummary says in one line what a stock transform does; "" when there is none of that name.
func StockSummary(name string) string {
	return stockSummaries[name]
}

// StockReference is what a user has to know of a stock transform, in Markdown: an example, its configuration, its outputs and
// dead letters. "" when there is none of that name.
func StockReference(name string) string {
	if _, known := stockSummaries[name]; !known {
		return ""
	}
	return string(stockFile(name + "/README.md"))
}

// ExpressionReference describes the expression language of the stock transforms, in Markdown.
func ExpressionReference() string {
	return string(stockFile("stock/EXPRESSIONS.md"))
}

func stockFile(path string) []byte {
	data, err := fs.ReadFile(stockFiles, path)
	if err != nil {
		return nil
	}
	return data
}
