package partition_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
	"github.com/wasmill/wasmill/host/rows/partition"
)

func TestWalk(t *testing.T) {
	disk := faulty.New().Process()
	for _, dir := range []string{"/t", "/t/a=1", "/t/a=1/b=2", "/t/a=1/b=2/c=3", "/t/_delta_log"} {
		if err := disk.MkdirAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := durable.WriteFile(disk, dir+"/x", []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	var seen []string
	visit := func(rel string, _ durable.Info) error {
		seen = append(seen, rel)
		return nil
	}
	if err := partition.Walk(context.Background(), disk, "/t", 2, visit); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a=1/b=2/x", "a=1/x", "x"}; !slices.Equal(slices.Sorted(slices.Values(seen)), want) {
		t.Errorf("visited %q, want %q", seen, want)
	}
	if err := partition.Walk(context.Background(), disk, "/nowhere", 2, visit); err != nil {
		t.Errorf("a folder that is not there: %v", err)
	}
	stop := errors.New("enough")
	if err := partition.Walk(context.Background(), disk, "/t", 2, func(string, durable.Info) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("%v, want the visitor's error", err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := partition.Walk(ended, disk, "/t", 2, visit); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it was cancelled", err)
	}
}
