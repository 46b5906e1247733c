package rewriter

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/host/sandbox/binary"
)

var update = flag.Bool("update", false, "write the table of costs of a new version")

// costTable lists every cost there is.
func costTable() string {
	byCost := map[int][]string{}
	for op := range binary.Op(len(costs)) {
		if binary.Known(op) {
			byCost[cost(op)] = append(byCost[cost(op)], op.String())
		}
	}
	var prices []int
	for price := range byCost {
		prices = append(prices, price)
	}
	slices.Sort(prices)
	var b strings.Builder
	fmt.Fprintf(&b, "cost version %d\n", CostVersion)
	for _, price := range prices {
		fmt.Fprintf(&b, "%d: %s\n", price, strings.Join(byCost[price], ", "))
	}
	fmt.Fprintf(&b, "a byte of memory.fill, memory.copy, memory.init: 1/%d, in chunks of %d bytes, each rounded down\n", 1<<costBytesShift, bulkChunk)
	fmt.Fprintf(&b, "an element of table.fill, table.copy, table.init, table.grow: 1, at most %d\n", maxItems)
	fmt.Fprintf(&b, "a page added by memory.grow: %d\n", costPage)
	fmt.Fprintf(&b, "the path through a region: at most %d besides its first piece\n", regionMax)
	fmt.Fprintf(&b, "depth: 1 a call, and 1 more for each %d slots of a function; half as many count where it has no vectors\n", frameShare)
	return b.String()
}

// TestCostsAreFrozen: with other costs other batches run out of fuel, so a version's costs never change. The costs of a new
// version are written by -update once CostVersion is raised.
func TestCostsAreFrozen(t *testing.T) {
	name := fmt.Sprintf("testdata/costs-%d.txt", CostVersion)
	want, err := os.ReadFile(name)
	if *update && os.IsNotExist(err) {
		if err := os.WriteFile(name, []byte(costTable()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := costTable(); got != string(want) {
		t.Errorf("the costs of version %d are not those that were frozen: raise CostVersion and the engine's semantics\n%s", CostVersion, got)
	}
}
