package delta_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/source"
	"github.com/wasmill/wasmill/host/source/delta"
)

// told collects rows as they are read, and what is said of those that are rejected.
type told []string

func (w *told) Write(r *abi.Record) error {
	*w = append(*w, string(r.Value))
	return nil
}

func (w *told) Reject(r *abi.Record, code, reason string) error {
	*w = append(*w, fmt.Sprintf("%d %s %.55s", r.Offset, code, reason))
	return nil
}

// TestSparkCalendars reads tables whose files Spark wrote by its old calendar as Spark itself does; rows with what cannot be
// told are rejected.
func TestSparkCalendars(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "calendar", "rows.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for name, rejected := range map[string]int{"utc": 0, "int96": 0, "zone": 3} {
		t.Run(name, func(t *testing.T) {
			src := golden(t, filepath.Join("..", "calendar", name))
			end := latest(t, src, checkpoint.Position{}, 0)
			splits, err := src.Splits(ctx, source.Range{To: end})
			if err != nil || len(splits) != 1 {
				t.Fatalf("%d splits, %v", len(splits), err)
			}
			var got told
			if err := src.Read(ctx, splits[0], &got); err != nil {
				t.Fatal(err)
			}
			for i, want := range lines {
				if i < rejected {
					want = fmt.Sprintf("%d %s column t: a time before 1900 cannot be told for certain", i, delta.RejectValue)
				}
				if i >= len(got) || got[i] != want {
					t.Errorf("row %d of %q, want %s", i, []string(got), want)
				}
			}
		})
	}
}
