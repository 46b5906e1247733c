package examples

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/twmb/franz-go/pkg/kgo"
)

type parquetOrder struct {
	OrderID   *int64  `parquet:"order_id,optional"`
	Currency  *string `parquet:"currency,optional"`
	AmountEUR *int64  `parquet:"amount_eur,optional"`
}

// checkLake compares the table with what the input must give.
func checkLake(t *testing.T, in map[int32][]*kgo.Record, dir string) {
	t.Helper()
	var want, got []string
	byKey, _ := wanted(t, in)
	field := regexp.MustCompile(`"order_id":(\d+),.*"currency":"([A-Z]+)",.*"amount_eur":(\d+)\.(\d\d)}$`)
	for _, values := range byKey {
		for _, v := range values {
			m := field.FindStringSubmatch(v)
			want = append(want, fmt.Sprintf("%s %s %s", m[1], m[2], strings.TrimLeft(m[3]+m[4], "0")))
		}
	}
	for _, name := range manifest(t, dir) {
		rows, err := parquet.ReadFile[parquetOrder](name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, r := range rows {
			if r.OrderID == nil || r.Currency == nil || r.AmountEUR == nil {
				t.Fatalf("%s: a row without a value", name)
			}
			got = append(got, fmt.Sprintf("%d %s %s", *r.OrderID, *r.Currency, strings.TrimLeft(strconv.FormatInt(*r.AmountEUR, 10), "0")))
		}
	}
	sameRows(t, "the table", got, want)
}

// betweenPublishes are the points from the decision on, among those that a batch passes.
func betweenPublishes(points []string) (between []string) {
	for _, p := range points {
		if strings.HasPrefix(p, "publish:") || strings.HasPrefix(p, "decide:after") || strings.HasPrefix(p, "seal:before") ||
			strings.Contains(p, "_spark_metadata") || strings.Contains(p, "spool") || strings.Contains(p, "published") || strings.Contains(p, "commits/") {
			between = append(between, p)
		}
	}
	return between
}

// mixedBlows are kills at points, most of them between the two publishes, and at the requests that end the transaction.
func mixedBlows(points []string, want int, rng *rand.Rand) []blow {
	var out []blow
	named := func(p string) blow {
		return blow{name: "a named point", point: p + "@" + strconv.Itoa(1+rng.IntN(3))}
	}
	between := betweenPublishes(points)
	for _, p := range between {
		out = append(out, named(p))
	}
	for len(out) < want*3/4 {
		nth := 1 + rng.IntN(3)
		out = append(out,
			blow{name: "the request that commits", wire: cutBefore, deadly: true, key: commitTxn, nth: nth},
			blow{name: "the answer to a commit", wire: cutAfter, deadly: true, key: commitTxn, nth: nth})
	}
	for _, i := range rng.Perm(len(points)) {
		if p := points[i]; len(out) < want && !slices.Contains(between, p) {
			out = append(out, named(p))
		}
	}
	for len(out) < want {
		out = append(out, blow{name: "random", after: time.Duration(50+rng.IntN(700)) * time.Millisecond})
	}
	rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// TestKafkaMixed kills a job that publishes each batch to a topic and to a table, most often between the two. Both hold every
// order once in the end.
func TestKafkaMixed(t *testing.T) {
	b := realBroker(t)
	rng := newRand(t)
	w := newWorld(t, b, startProxy(t, b), false, func(j *kafkaJob) { j.lake = true })
	w.feed.feed(t.Context(), t, 120, 0)
	points, _ := w.traced(t)
	var often []string
	for _, p := range slices.Sorted(maps.Keys(points)) {
		if points[p] >= w.batches()/2 {
			often = append(often, p)
		}
	}
	want := kafkaKills(100)
	blows := mixedBlows(often, want, rng)
	t.Logf("%d named points, %d of them between the decision and the end of the batch", len(often), len(betweenPublishes(often)))
	stop := w.feed.start(t, 15*time.Millisecond)
	for i := range blows {
		w.strike(t, &blows[i])
	}
	stop()
	w.finish(t)
	records := w.check(t)
	checkLake(t, b.committed(t, w.job.orders), filepath.Join(w.dir, "lake"))
	w.report(t)
	t.Logf("%d kills over %d batches, %d orders exactly once in the topic and in the table", w.kills(), w.batches(), records)
	if w.kills() < want {
		t.Errorf("%d kills, %d were asked for", w.kills(), want)
	}
	if w.rungs["spool"] == 0 {
		t.Errorf("the spool was never needed: %s", counts(w.rungs))
	}
}
