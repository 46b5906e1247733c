package delta_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
	"github.com/wasmill/wasmill/host/rows/rowstest"
	"github.com/wasmill/wasmill/host/sink"
	target "github.com/wasmill/wasmill/host/sink/delta"
	"github.com/wasmill/wasmill/host/sink/sinktest"
)

// suitePlace is a table whose clock runs fast, so that sweeps and checkpoints happen.
func suitePlace(t *testing.T, dir string, key []string, process, usurp func() durable.Files) sinktest.Place {
	schema := rowstest.SchemaOf(t, "i", "int32 not null", "text", "string")
	calls := 0
	clock := func() time.Time { calls++; return start.Add(time.Duration(calls) * time.Minute) }
	openAs := func(name, dir string, next func() durable.Files) func(t *testing.T) sink.Target {
		return func(t *testing.T) sink.Target {
			tt, err := target.New(target.Config{
				Sink: name, Dir: dir, Schema: schema, Key: key, Grace: time.Second, CheckpointInterval: 3, Clock: clock, Files: next(),
			})
			if err != nil {
				t.Fatal(err)
			}
			return tt
		}
	}
	openAt := func(dir string, next func() durable.Files) func(t *testing.T) sink.Target {
		return openAs("lake", dir, next)
	}
	p := sinktest.Place{
		Sink: "lake", Shared: true, Open: openAt(dir, process), Alias: openAs("renamed", dir, process), Elsewhere: openAt(dir+"-elsewhere", process),
		Value: func(i int) string { return fmt.Sprintf(`{"i":%d,"text":"row %d"}`, i, i) }, Misfit: `{"i":1`,
		Visible: func(t *testing.T) []string { return rowsOf(t, process(), dir) },
	}
	if usurp != nil {
		p.Usurp = openAt(dir, usurp)
	}
	return p
}

func TestSuite(t *testing.T) {
	for name, key := range map[string][]string{"append": nil, "upsert": {"i"}} {
		t.Run(name+" on the real file system", func(t *testing.T) {
			sinktest.Run(t, func(t *testing.T) sinktest.Place {
				return suitePlace(t, filepath.Join(t.TempDir(), "out"), key, durable.OS, durable.OS)
			})
		})
		t.Run(name+" on the faulty file system", func(t *testing.T) {
			sinktest.Run(t, func(t *testing.T) sinktest.Place {
				fs := faulty.New()
				process := func() durable.Files { return fs.Process() }
				return suitePlace(t, "/data/out", key, process, process)
			})
		})
	}
}
