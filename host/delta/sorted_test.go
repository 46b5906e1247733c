package delta

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// A sorted map is a map, keeps its order, and an older one stays as it was.
func TestSortedIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s sorted[int]
		want := map[string]int{}
		type kept struct {
			s    sorted[int]
			want map[string]int
		}
		var old []kept
		for step := range rapid.IntRange(1, 60).Draw(t, "steps") {
			var changes []item[int]
			for range rapid.IntRange(0, 30).Draw(t, "changes") {
				key := strconv.Itoa(rapid.IntRange(0, 300).Draw(t, "key"))
				gone := rapid.IntRange(0, 2).Draw(t, "gone") == 0
				changes = append(changes, item[int]{key: key, value: step, gone: gone})
				want[key] = step
				if gone {
					delete(want, key)
				}
			}
			s = s.with(changes)
			old = append(old, kept{s, maps.Clone(want)})
		}
		for _, k := range old {
			got := map[string]int{}
			var order []string
			for key, v := range k.s.all() {
				got[key] = v
				order = append(order, key)
				if found, ok := k.s.get(key); !ok || found != v {
					t.Fatalf("get %s: %d, %v", key, found, ok)
				}
			}
			if diff := cmp.Diff(k.want, got); diff != "" || !slices.IsSorted(order) || k.s.len() != len(k.want) {
				t.Fatalf("%d of %d keys, in order %v: %s", k.s.len(), len(k.want), slices.IsSorted(order), diff)
			}
			if _, ok := k.s.get("nothing"); ok {
				t.Fatal("a key that is not there was found")
			}
		}
	})
}

func TestSortedStopsEarly(t *testing.T) {
	s := sorted[int]{}.with([]item[int]{{key: "b", value: 2}, {key: "a", value: 1}})
	for k := range s.all() {
		if k != "a" {
			t.Errorf("first key %s", k)
		}
		break
	}
}
