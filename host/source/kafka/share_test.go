package kafka

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestAllot(t *testing.T) {
	for _, c := range []struct {
		lags  []int64
		limit int64
		want  []int64
	}{
		{[]int64{5, 0, 7}, 0, []int64{5, 0, 7}},
		{[]int64{5, 0, 7}, 12, []int64{5, 0, 7}},
		{[]int64{1000, 0, 1000}, 100, []int64{50, 0, 50}},
		{[]int64{1_000_000, 1, 1_000_000}, 90, []int64{45, 1, 44}},
		{[]int64{900, 100}, 100, []int64{71, 29}},
		{[]int64{3, 9}, 1, []int64{0, 1}},
		{nil, 5, []int64{}},
	} {
		got := allot(c.lags, c.limit)
		if !slices.Equal(got, c.want) {
			t.Errorf("%v in %d: %v, want %v", c.lags, c.limit, got, c.want)
		}
	}
}

// TestAllotHolds: the limit is used up and no more, nobody gets more than there is, and who has little lag is served.
func TestAllotHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lags := rapid.SliceOfN(rapid.Int64Range(0, 1<<40), 1, 50).Draw(t, "lags")
		limit := rapid.Int64Range(1, 1<<41).Draw(t, "limit")
		var total, sum int64
		for _, l := range lags {
			total += l
		}
		got := allot(lags, limit)
		for i := range got {
			sum += got[i]
			if got[i] < 0 || got[i] > lags[i] {
				t.Fatalf("%d of a lag of %d", got[i], lags[i])
			}
			if limit >= int64(2*len(lags)) && lags[i] > 0 && got[i] == 0 {
				t.Fatalf("a lag of %d gets nothing of %d", lags[i], limit)
			}
		}
		if sum != min(total, limit) {
			t.Fatalf("%d are taken, there are %d and the limit is %d", sum, total, limit)
		}
		if again := allot(lags, limit); !slices.Equal(got, again) {
			t.Fatal("shares differ from run to run")
		}
	})
}
