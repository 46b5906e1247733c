package delta_test

import (
	"fmt"
	"testing"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/delta"
)

const benchStats = `{"numRecords":1000,"minValues":{"id":1,"name":"aaaaaaaa"},"maxValues":{"id":1000,"name":"zzzzzzzz"},"nullCount":{"id":0,"name":0}}`

// large commits a table of so many versions with one file each.
func large(b *testing.B, versions int, files int) (*delta.Log, string) {
	b.Helper()
	dir := b.TempDir()
	l := delta.OpenLog(durable.OS(), dir, clock)
	s := create(b, l)
	for v := range versions {
		actions := []delta.Action{info(fmt.Sprint(v)), txn("q", int64(v))}
		for f := range files {
			a := add(fmt.Sprintf("part-00000-%08d-%04d.c000.snappy.parquet", v, f))
			a.Add.Stats = benchStats
			actions = append(actions, a)
		}
		_, err := l.Commit(ctx, s, actions)
		must(b, err)
		s = snapshot(b, l)
	}
	return l, dir
}

// BenchmarkCommit is a commit with the snapshot before it, on a table of 20,000 files.
func BenchmarkCommit(b *testing.B) {
	l, _ := large(b, 20, 1000)
	b.ResetTimer()
	for i := range b.N {
		s := snapshot(b, l)
		_, err := l.Commit(ctx, s, []delta.Action{info(fmt.Sprint(i)), txn("q", int64(i)), add(fmt.Sprintf("f%d", i))})
		must(b, err)
	}
}

// BenchmarkFollow reads one more entry of another writer.
func BenchmarkFollow(b *testing.B) {
	l, dir := large(b, 20, 1000)
	follower := delta.OpenLog(durable.OS(), dir, clock)
	snapshot(b, follower)
	s := snapshot(b, l)
	b.ResetTimer()
	for i := range b.N {
		b.StopTimer()
		_, err := l.Commit(ctx, s, []delta.Action{info(fmt.Sprint(i)), txn("q", int64(i)), add(fmt.Sprintf("f%d", i))})
		must(b, err)
		s = snapshot(b, l)
		b.StartTimer()
		snapshot(b, follower)
	}
}

// BenchmarkReplay reads a log of 2,000 entries without a checkpoint.
func BenchmarkReplay(b *testing.B) {
	_, dir := large(b, 2000, 1)
	b.ResetTimer()
	for range b.N {
		snapshot(b, delta.OpenLog(durable.OS(), dir, clock))
	}
}

// BenchmarkCheckpoint writes, and reads, a checkpoint of 50,000 files.
func BenchmarkCheckpoint(b *testing.B) {
	l, _ := large(b, 50, 1000)
	s := snapshot(b, l)
	actions := delta.CheckpointActions(s)
	content, err := delta.EncodeCheckpoint(actions)
	must(b, err)
	b.Run("write", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			_, err := delta.EncodeCheckpoint(delta.CheckpointActions(s))
			must(b, err)
		}
	})
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			_, err := delta.ParseCheckpoint(content)
			must(b, err)
		}
	})
	b.Logf("%d actions in %d bytes", len(actions), len(content))
}
