package demo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/fault"
)

// Proof is what the count at the end came to.
type Proof struct {
	// Generated is how many orders the generator's job says it has made: 0 to Generated-1.
	Generated int64 `json:"generated"`
	// Kept is how many of them are not cancelled, and so must have come through.
	Kept int64 `json:"kept"`
	// Orders, Converted and Rows are what lies in the topics and in the table.
	Orders    int64 `json:"orders"`
	Converted int64 `json:"converted"`
	Rows      int64 `json:"rows"`
	// Customers is how many keys the order was checked for.
	Customers int64 `json:"customers"`
	// The sums of amount_eur, in cents.
	WantCents      int64 `json:"wantCents"`
	ConvertedCents int64 `json:"convertedCents"`
	RowsCents      int64 `json:"rowsCents"`
	// Findings is what is wrong, in words. Without any nothing was lost or doubled.
	Findings []string `json:"findings"`
}

// prove counts everything that lies in topics and table.
func prove(ctx context.Context, files durable.Files, brokers []string, dir string, seed uint64) (*Proof, error) {
	n, err := generated(files, path.Join(dir, checkpoints, jobOrders))
	if err != nil {
		return nil, fmt.Errorf("read how many orders were generated: %w", err)
	}
	l, err := newLedger(ctx, seed, n)
	if err != nil {
		return nil, err
	}
	in, out, table := newCount("topic "+topicOrders, l, true), newCount("topic "+topicConverted, l, false), newCount("table", l, false)
	if err := readTopic(ctx, brokers, topicOrders, func(r *kgo.Record) { in.record(r.Key, r.Value) }); err != nil {
		return nil, err
	}
	if err := readTopic(ctx, brokers, topicConverted, func(r *kgo.Record) { out.record(r.Key, r.Value) }); err != nil {
		return nil, err
	}
	if err := readTable(files, path.Join(dir, tableFolder), table.row); err != nil {
		return nil, err
	}
	return judge(l, in, out, table), nil
}

// judge makes the proof of complete counts.
func judge(l *ledger, in, out, table *count) *Proof {
	p := &Proof{
		Generated: int64(len(l.orders)), Kept: l.kept, WantCents: l.cents,
		Orders: in.Records, Converted: out.Records, Rows: table.Records, Customers: int64(len(out.last)),
		ConvertedCents: out.Cents, RowsCents: table.Cents, Findings: []string{},
	}
	for _, c := range []*count{in, out, table} {
		c.close()
		p.Findings = append(p.Findings, c.text()...)
	}
	for _, c := range []*count{out, table} {
		if c.Cents != l.cents {
			p.Findings = append(p.Findings, fmt.Sprintf("%s: amount_eur sums to %s, not %s", c.place, euros(c.Cents), euros(l.cents)))
		}
	}
	if p.Generated == 0 {
		p.Findings = append(p.Findings, "no order was generated: there is nothing to prove")
	}
	return p
}

// lines prints the proof.
func (p *Proof) lines() []string {
	out := []string{
		"proof: what lies in the topics and in the table, counted by number and held against the generator",
		fmt.Sprintf("  topic %-10s %11s of %s orders generated, each once, byte for byte", topicOrders, thousands(p.Orders), thousands(p.Generated)),
		fmt.Sprintf("  topic %-10s %11s of %s orders not cancelled, each once, in order for each of %s customers", topicConverted, thousands(p.Converted), thousands(p.Kept), thousands(p.Customers)),
		fmt.Sprintf("  table %-10s %11s of %s rows, each once", tableFolder, thousands(p.Rows), thousands(p.Kept)),
		fmt.Sprintf("  amount_eur       %s in the topic, %s in the table, %s expected", euros(p.ConvertedCents), euros(p.RowsCents), euros(p.WantCents)),
	}
	if len(p.Findings) == 0 {
		return append(out, "nothing was lost, nothing was doubled")
	}
	out[0] = "the proof FAILED: what lies in the topics and in the table, counted by number"
	for i, line := range out[1:] {
		out[i+1], _, _ = strings.Cut(line, ", each once")
	}
	for _, f := range p.Findings {
		out = append(out, "  "+f)
	}
	return out
}

// err is nil for a proof without findings.
func (p *Proof) err(dir string) error {
	if len(p.Findings) == 0 {
		return nil
	}
	return fault.New(CodeProof, dir, fmt.Errorf("%s", p.Findings[0]), "this must not happen: keep the folder, and report it with the files in it")
}

// generated is the position that the last plan of a generator's job ends at: how many orders it has made. Without a plan
// it has made none.
func generated(files durable.Files, dir string) (int64, error) {
	plans := path.Join(dir, "offsets")
	infos, err := files.List(plans)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	last := int64(-1)
	for _, i := range infos {
		if n, err := strconv.ParseInt(i.Name, 10, 64); err == nil {
			last = max(last, n)
		}
	}
	if last < 0 {
		return 0, nil
	}
	content, err := readFile(files, path.Join(plans, strconv.FormatInt(last, 10)))
	if err != nil {
		return 0, err
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strconv.ParseInt(lines[len(lines)-1], 10, 64)
}
