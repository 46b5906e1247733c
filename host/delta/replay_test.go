package delta_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
	"github.com/wasmill/wasmill/host/delta"
)

// model is a table as simply as it can be kept.
type model struct {
	files   map[string]int64 // path and vector, to the modification time
	removed map[string]bool
	txns    map[string]int64
	domains map[string]string
	schema  int64 // createdTime of the metaData
}

func (m *model) clone() *model {
	out := &model{files: map[string]int64{}, removed: map[string]bool{}, txns: map[string]int64{}, domains: map[string]string{}, schema: m.schema}
	for k, v := range m.files {
		out.files[k] = v
	}
	for k, v := range m.removed {
		out.removed[k] = v
	}
	for k, v := range m.txns {
		out.txns[k] = v
	}
	for k, v := range m.domains {
		out.domains[k] = v
	}
	return out
}

func of(s *delta.Snapshot) *model {
	m := &model{files: map[string]int64{}, removed: map[string]bool{}, txns: map[string]int64{}, domains: map[string]string{}}
	if s.Metadata.CreatedTime != nil {
		m.schema = *s.Metadata.CreatedTime
	}
	for a := range s.Files() {
		m.files[key(a.Path, a.DeletionVector)] = a.ModificationTime
	}
	for _, a := range delta.CheckpointActions(s) {
		switch {
		case a.Remove != nil:
			m.removed[key(a.Remove.Path, a.Remove.DeletionVector)] = true
		case a.Txn != nil:
			m.txns[a.Txn.AppID] = a.Txn.Version
		case a.Domain != nil:
			m.domains[a.Domain.Domain] = a.Domain.Configuration
		}
	}
	return m
}

func key(path string, dv *delta.DeletionVector) string {
	if dv == nil {
		return path
	}
	return path + "|" + dv.PathOrInlineDV
}

// draw makes an entry and applies it to the model.
func (m *model) draw(t *rapid.T, version int64) []delta.Action {
	actions := []delta.Action{info(fmt.Sprint(version))}
	used := map[string]bool{}
	once := func(kind, name string) bool {
		fresh := !used[kind+name]
		used[kind+name] = true
		return fresh
	}
	at := epoch.UnixMilli()
	var adds []delta.Action
	for range rapid.IntRange(0, 6).Draw(t, "actions") {
		name := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g"}).Draw(t, "name")
		var dv *delta.DeletionVector
		if rapid.IntRange(0, 3).Draw(t, "vector") == 0 {
			dv = &delta.DeletionVector{StorageType: "u", PathOrInlineDV: rapid.SampledFrom([]string{"1", "2"}).Draw(t, "dv"), Cardinality: 1}
		}
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0, 1:
			if once("add", key(name, dv)) {
				adds = append(adds, delta.Action{Add: &delta.Add{
					Path: name, Size: 1, DataChange: true, ModificationTime: version, PartitionValues: map[string]*string{}, DeletionVector: dv,
				}})
			}
		case 2:
			if once("remove", key(name, dv)) {
				actions = append(actions, delta.Action{Remove: &delta.Remove{Path: name, DataChange: true, DeletionTimestamp: &at, DeletionVector: dv}})
				delete(m.files, key(name, dv))
				m.removed[key(name, dv)] = true
			}
		case 3:
			if once("txn", name) {
				v := rapid.Int64Range(-3, 3).Draw(t, "txn")
				actions = append(actions, txn(name, v))
				m.txns[name] = v
			}
		case 4:
			if once("domain", name) {
				gone := rapid.Bool().Draw(t, "gone")
				actions = append(actions, delta.Action{Domain: &delta.DomainMetadata{Domain: name, Configuration: fmt.Sprint(version), Removed: gone}})
				m.domains[name] = fmt.Sprint(version)
				if gone {
					delete(m.domains, name)
				}
			}
		case 5:
			if once("metaData", "") {
				meta := metadata()
				meta.CreatedTime = &version
				actions = append(actions, delta.Action{Metadata: meta})
				m.schema = version
			}
		}
	}
	for _, a := range adds {
		k := key(a.Add.Path, a.Add.DeletionVector)
		m.files[k] = version
		delete(m.removed, k)
	}
	return slices.Concat(actions, adds)
}

// Any log comes to what the model says, at each version, read at once or step by step, from any checkpoints, with the entries
// before them gone or not.
func TestReplayIsTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		disk := faulty.New()
		p := disk.Process()
		writer := delta.OpenLog(p, "/table", clock)
		follower := delta.OpenLog(p, "/table", clock)
		models := []*model{{}}
		models[0] = models[0].clone()
		_, err := writer.Commit(ctx, nil, []delta.Action{info("create"), {Protocol: protocol()}, {Metadata: metadata()}})
		if err != nil {
			t.Fatal(err)
		}
		first := int64(0)
		versions := rapid.Int64Range(1, 25).Draw(t, "versions")
		for v := int64(1); v <= versions; v++ {
			s, err := writer.Snapshot(ctx)
			if err != nil {
				t.Fatal(err)
			}
			m := models[v-1].clone()
			actions := m.draw(t, v)
			models = append(models, m)
			if _, err := writer.Commit(ctx, s, actions); err != nil {
				t.Fatal(err)
			}
			if rapid.IntRange(0, 4).Draw(t, "checkpoint") == 0 {
				if s, err = follower.Snapshot(ctx); err != nil {
					t.Fatal(err)
				}
				if err := follower.WriteCheckpoint(ctx, s); err != nil {
					t.Fatal(err)
				}
				if rapid.Bool().Draw(t, "clean") {
					for ; first < v; first++ {
						if err := p.Remove("/table/" + entryFile(first)); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
		}
		for v := first; v <= versions; v++ {
			for name, l := range map[string]*delta.Log{"writer": writer, "follower": follower, "fresh": delta.OpenLog(p, "/table", clock)} {
				s, err := l.SnapshotAt(ctx, v)
				if err != nil {
					t.Fatalf("%s, version %d: %v", name, v, err)
				}
				if diff := cmp.Diff(models[v], of(s), cmp.AllowUnexported(model{})); diff != "" {
					t.Fatalf("%s, version %d: %s", name, v, diff)
				}
				if s.NumFiles() != len(models[v].files) {
					t.Fatalf("%d files counted, %d there", s.NumFiles(), len(models[v].files))
				}
			}
		}
	})
}
