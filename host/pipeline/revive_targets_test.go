package pipeline

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/job"
)

// outlet is a kind of sink, and how its records are counted.
type outlet struct {
	connections, sink string // sink has a %s for its name
	count             func(t *testing.T, p *place, sink string, most int) int
}

// TestRunAgainUnderAnEarlierRevision: a batch is decided and not published, as the process ends there; the next start has another module and
// a sink more. What was staged in a transaction is gone, so the batch runs again under the revision that decided it, for the targets that
// are open now.
func TestRunAgainUnderAnEarlierRevision(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "first", "second"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	for name, o := range map[string]outlet{
		"sqlite": {
			connections: "db: {sqlite: {path: ./out.db}}", count: countRows,
			sink: `{name: %[1]s, from: [pass], sqlite: {connection: db, table: %[1]s, schema: {order_id: int64}, createTable: true}}`,
		},
		"kafka": {
			connections: fmt.Sprintf("main: {kafka: {brokers: [%q]}}", cluster.ListenAddrs()[0]), count: countRecords(cluster.ListenAddrs()[0]),
			sink: `{name: %[1]s, from: [pass], kafka: {connection: main, topic: %[1]s}}`,
		},
	} {
		t.Run(name, func(t *testing.T) { runAgain(t, o) })
	}
}

func runAgain(t *testing.T, o outlet) {
	p := newPlace(t)
	p.module("echo", "")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	recovered := ""
	p.env.Events = &engine.Events{
		Step: func(batch checkpoint.BatchID, step engine.Step, done bool) {
			if batch == 1 && step == engine.StepPublish && !done {
				cancel()
			}
		},
		Recovered: func(r engine.Recovery) { recovered += r.Rung + " " },
	}
	if err := p.runUntil(ctx, o.job(p, "first")); !errors.Is(err, context.Canceled) {
		t.Fatalf("the first run was to be broken off: %v", err)
	}
	if n := o.count(t, p, "first", 20); n != 20 {
		t.Fatalf("%d records are published of a batch of 20", n)
	}
	p.module("odd", "")
	p.env.AllowChanges = true
	if err := p.run(o.job(p, "second", "first")); err != nil {
		t.Fatal(err)
	}
	if a, b := o.count(t, p, "first", 40), o.count(t, p, "second", 0); a != 40 || b != 0 {
		t.Errorf("%d and %d records are published, want 40 and none (%s)", a, b, recovered)
	}
}

func (o *outlet) job(p *place, sinks ...string) *job.Job {
	p.t.Helper()
	text := "apiVersion: wasmill/v1\nkind: Job\nmetadata: {name: again}\nspec:\n  checkpoint: ./checkpoint\n  trigger: {availableNow: true}\n"
	if o.connections != "" {
		text += "  connections: {" + o.connections + "}\n"
	}
	text += "  sources: [{name: orders, generator: {records: 40, seed: 3}, batch: {maxRecords: 20}}]\n" +
		"  transforms: [{name: pass, from: [orders], module: m.wasm}]\n  sinks:\n"
	for _, s := range sinks {
		text += "    - " + fmt.Sprintf(o.sink, s) + "\n"
	}
	j, err := job.Parse("job.yaml", []byte(text), job.Env{Dir: p.dir})
	if err != nil {
		p.t.Fatal(err)
	}
	return j
}

func countRows(t *testing.T, p *place, table string, _ int) (n int) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(p.dir, "out.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := db.QueryRow("select count(*) from " + table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// countRecords counts what readers of committed records see of a topic: up to most, and what comes right after.
func countRecords(broker string) func(*testing.T, *place, string, int) int {
	return func(t *testing.T, _ *place, topic string, most int) (n int) {
		t.Helper()
		client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		for {
			patience := 10 * time.Second
			if n >= most {
				patience = 300 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			got := client.PollFetches(ctx).NumRecords()
			cancel()
			if n += got; got == 0 {
				return n
			}
		}
	}
}
