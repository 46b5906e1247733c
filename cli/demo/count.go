package demo

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/zeebo/xxh3"
)

// examples is how many of a kind of finding are named.
const examples = 3

// count goes through one place, a topic or the table, and holds it against the ledger.
type count struct {
	place  string
	ledger *ledger
	all    bool // cancelled orders must be there too
	seen   []uint8
	last   map[uint64]int64 // customer: the number of the order before
	// Records and Cents are what there is, whether or not it should be.
	Records, Cents int64
	findings       map[string]*finding
}

// finding is one kind of mistake.
type finding struct {
	times int64
	which []string
}

// The kinds of mistakes.
const (
	lost       = "lost"
	doubled    = "doubled"
	disordered = "out of order for its customer"
	wrong      = "not what was made of the order"
	foreign    = "never generated, or cancelled"
)

// kinds is their order in a report.
var kinds = []string{lost, doubled, disordered, wrong, foreign}

func newCount(place string, l *ledger, all bool) *count {
	return &count{
		place: place, ledger: l, all: all, seen: make([]uint8, len(l.orders)), last: map[uint64]int64{}, findings: map[string]*finding{},
	}
}

func (c *count) find(kind, which string) {
	f := c.findings[kind]
	if f == nil {
		f = &finding{}
		c.findings[kind] = f
	}
	if f.times++; len(f.which) < examples {
		f.which = append(f.which, which)
	}
}

// number enters an order by its number, and says whether it should be there.
func (c *count) number(n int64) bool {
	c.Records++
	if n < 0 || n >= int64(len(c.seen)) || !c.expects(n) {
		c.find(foreign, strconv.FormatInt(n, 10))
		return false
	}
	if c.seen[n] > 0 {
		c.find(doubled, strconv.FormatInt(n, 10))
	}
	c.seen[n] = 1
	return true
}

func (c *count) expects(n int64) bool { return c.all || c.ledger.orders[n].cents >= 0 }

// record enters a record of a topic. Records of a partition come in its order.
func (c *count) record(key, value []byte) {
	n, ok := orderNumber(value)
	if !ok {
		c.Records++
		c.find(foreign, fmt.Sprintf("%.60q", value))
		return
	}
	if !c.number(n) {
		return
	}
	want := c.ledger.orders[n]
	customer := xxh3.Hash(key)
	if before, ok := c.last[customer]; ok && before > n {
		c.find(disordered, fmt.Sprintf("%d after %d", n, before))
	}
	c.last[customer] = n
	original := value
	if !c.all {
		var amount int64
		original, amount, ok = withoutEuros(value)
		ok = ok && amount == want.cents
		c.Cents += amount
	}
	if !ok || customer != want.customer || xxh3.Hash(original) != want.hash {
		c.find(wrong, strconv.FormatInt(n, 10))
	}
}

// row enters a row of the table.
func (c *count) row(n, cents int64) {
	c.Cents += cents
	if c.number(n) && cents != c.ledger.orders[n].cents {
		c.find(wrong, strconv.FormatInt(n, 10))
	}
}

// close looks for what is missing.
func (c *count) close() {
	for n, seen := range c.seen {
		if seen == 0 && c.expects(int64(n)) {
			c.find(lost, strconv.Itoa(n))
		}
	}
}

// text says what was found, one kind a line.
func (c *count) text() []string {
	var out []string
	for _, kind := range kinds {
		f := c.findings[kind]
		if f == nil {
			continue
		}
		line := fmt.Sprintf("%s: %s %s: order %s", c.place, thousands(f.times), kind, f.which[0])
		for _, w := range f.which[1:] {
			line += ", " + w
		}
		if f.times > int64(len(f.which)) {
			line += ", .."
		}
		out = append(out, line)
	}
	return out
}

// orderNumber reads the number that an order begins with.
func orderNumber(value []byte) (int64, bool) {
	rest, ok := bytes.CutPrefix(value, []byte(`{"order_id":`))
	if !ok {
		return 0, false
	}
	digits, _, ok := bytes.Cut(rest, []byte(","))
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(string(digits), 10, 64)
	return n, err == nil
}

// withoutEuros takes off what the transform adds: the member amount_eur, behind all others.
func withoutEuros(value []byte) (original []byte, amount int64, ok bool) {
	i := bytes.LastIndex(value, []byte(`,"amount_eur":`))
	if i < 0 || value[len(value)-1] != '}' {
		return value, 0, false
	}
	amount, ok = cents(string(value[i+len(`,"amount_eur":`) : len(value)-1]))
	return append(bytes.Clone(value[:i]), '}'), amount, ok
}
