package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/job"
)

// TestLossOfWhatIsPlanned: a batch is planned, the process ends, and what was planned is deleted. The job stops and says
// what is lost; told to skip losses it makes another plan of the same batch, keeps the first beside it, and reads on.
func TestLossOfWhatIsPlanned(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.DefaultProduceTopic("orders"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	lines := make([]string, 100)
	for i := range lines {
		lines[i] = fmt.Sprintf(`{"order":%d}`, i)
		if err := client.ProduceSync(t.Context(), kgo.StringRecord(lines[i])).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	p := newPlace(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p.env.Events = &engine.Events{Step: func(id checkpoint.BatchID, s engine.Step, done bool) {
		if id == 1 && s == engine.StepRun && !done {
			cancel()
		}
	}}
	if err := p.runUntil(ctx, p.lossy(t, cluster.ListenAddrs()[0], "fail")); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	p.env.Events = nil
	if err := cluster.DeleteRecords("orders", 0, 60); err != nil {
		t.Fatal(err)
	}
	err = p.run(p.lossy(t, cluster.ListenAddrs()[0], "fail"))
	if codeOf(err) != "source.changed" || !strings.Contains(err.Error(), "orders-0") || !strings.Contains(err.Error(), "offsets 40 to 59") {
		t.Fatalf("a loss: %v", err)
	}
	if err := p.run(p.lossy(t, cluster.ListenAddrs()[0], "skip")); err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSuffix(p.screen.String(), "\n"), "\n")
	if want := slices.Concat(lines[:40], lines[60:]); !slices.Equal(got, want) {
		t.Errorf("%d lines are printed, want %d:\n%s", len(got), len(want), p.screen.String())
	}
	offsets := filepath.Join(p.dir, "checkpoint", "offsets")
	kept, err := filepath.Glob(filepath.Join(offsets, ".1.amended-*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept of the first plan: %q, %v", kept, err)
	}
	for file, want := range map[string]string{kept[0]: `{"orders":{"0":80}}`, filepath.Join(offsets, "1"): `{"orders":{"0":100}}`} {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s holds %s (%v), without %s", filepath.Base(file), text, err, want)
		}
	}
	for n := range checkpoint.BatchID(2) {
		r, err := p.history(p.lossy(t, cluster.ListenAddrs()[0], "skip")).Batch(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Prove(t.Context()); (err == nil) != (n == 1) { // what batch 0 read is gone too
			t.Errorf("batch %d: %v", n, err)
		}
	}
}

// runUntil runs a job until it ends or ctx does.
func (p *place) runUntil(ctx context.Context, j *job.Job) error {
	p.t.Helper()
	program := p.load(j)
	pl, err := program.Open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(pl.Run(ctx, nil), pl.Close())
}

// lossy parses a job that reads the topic orders and takes losses as it is told.
func (p *place) lossy(t *testing.T, brokers, onLoss string) *job.Job {
	t.Helper()
	echo, err := filepath.Abs("../../abi/kit/wasm/echo.wasm")
	if err != nil {
		t.Fatal(err)
	}
	j, err := job.Parse("job.yaml", []byte("apiVersion: wasmill/v1\nkind: Job\nmetadata: {name: lossy}\nspec:\n  checkpoint: ./checkpoint\n"+
		"  trigger: {availableNow: true}\n  connections: {main: {kafka: {brokers: ["+brokers+"], requestTimeout: 1s}}}\n"+
		"  sources: [{name: orders, kafka: {connection: main, topics: [orders], onDataLoss: "+onLoss+"}, batch: {maxRecords: 40}}]\n"+
		"  transforms: [{name: pass, from: [orders], module: "+echo+"}]\n"+
		"  sinks: [{name: screen, from: [pass], stdout: {}}]\n"), job.Env{Dir: p.dir})
	if err != nil {
		t.Fatal(err)
	}
	return j
}
