package examples

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// eurRates are euros times 10,000.
var eurRates = map[string]int64{"EUR": 10_000, "USD": 9_200, "GBP": 11_700, "JPY": 61}

// converted is what `convert` must make of an order, by way of rational numbers; ok is false when it drops it.
func converted(t *testing.T, value string) (out string, ok bool) {
	t.Helper()
	var o struct {
		Amount   json.Number `json:"amount"`
		Currency string      `json:"currency"`
		Status   string      `json:"status"`
	}
	if err := json.Unmarshal([]byte(value), &o); err != nil {
		t.Fatalf("order %s: %v", value, err)
	}
	if o.Status == "cancelled" {
		return "", false
	}
	eur, good := new(big.Rat).SetString(o.Amount.String())
	if !good || eurRates[o.Currency] == 0 {
		t.Fatalf("order %s", value)
	}
	eur.Mul(eur, big.NewRat(eurRates[o.Currency], 10_000))
	return strings.TrimSuffix(value, "}") + `,"amount_eur":` + eur.FloatString(2) + "}", true // FloatString rounds halves up
}

// wanted is what the output must hold: by key, in order.
func wanted(t *testing.T, in map[int32][]*kgo.Record) (byKey map[string][]string, records int) {
	t.Helper()
	byKey = map[string][]string{}
	for _, p := range slices.Sorted(maps.Keys(in)) {
		for _, r := range in[p] {
			if v, ok := converted(t, string(r.Value)); ok {
				byKey[string(r.Key)] = append(byKey[string(r.Key)], v)
				records++
			}
		}
	}
	return byKey, records
}

// checkOrders compares the output with what the input must give: every order once, in order per key, in the partition that
// its key belongs to.
func checkOrders(t *testing.T, in, out map[int32][]*kgo.Record) (records int) {
	t.Helper()
	want, records := wanted(t, in)
	got, at := map[string][]string{}, map[string]int32{}
	for p, all := range out {
		for _, r := range all {
			key := string(r.Key)
			got[key] = append(got[key], string(r.Value))
			if was, seen := at[key]; seen && was != p {
				t.Errorf("key %s is in partitions %d and %d", key, was, p)
			}
			at[key] = p
		}
	}
	bad := 0
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if slices.Equal(got[key], want[key]) {
			continue
		}
		if bad++; bad <= 3 {
			t.Errorf("key %s: %s", key, difference(got[key], want[key]))
		}
	}
	for key := range got {
		if want[key] == nil {
			t.Errorf("key %s is in the output and not in the input", key)
		}
	}
	if bad > 0 {
		t.Errorf("%d of %d keys differ", bad, len(want))
	}
	return records
}

// difference says in a few words what is lost, what is doubled, or where the order is lost.
func difference(got, want []string) string {
	count := map[string]int{}
	for _, v := range want {
		count[v]--
	}
	for _, v := range got {
		count[v]++
	}
	lost, extra := 0, 0
	var example string
	for v, n := range count {
		if n < 0 {
			lost -= n
			example = "lost: " + v
		}
		if n > 0 {
			extra += n
			example = "too often: " + v
		}
	}
	if example == "" {
		for i := range want {
			if got[i] != want[i] {
				example = fmt.Sprintf("at %d there is %s instead of %s", i, got[i], want[i])
				break
			}
		}
	}
	return fmt.Sprintf("%d records, want %d; %d lost, %d too many; %s", len(got), len(want), lost, extra, example)
}

// checkPrices demands of a copy of a compacted topic, made while it was compacted: nothing twice, in order per key, nothing
// that was not there, and of every key the last.
func checkPrices(t *testing.T, in, out map[int32][]*kgo.Record, produced int) (records int) {
	t.Helper()
	last, newest := map[string]int{}, map[string]int{}
	number := func(r *kgo.Record) int {
		n, err := strconv.Atoi(string(r.Value))
		if err != nil || n < 0 || n >= produced {
			t.Fatalf("price %q of %q was never produced", r.Value, r.Key)
		}
		return n
	}
	for _, all := range in {
		for _, r := range all {
			newest[string(r.Key)] = number(r)
		}
	}
	for _, all := range out {
		for _, r := range all {
			n, key := number(r), string(r.Key)
			if was, seen := last[key]; seen && was >= n {
				t.Fatalf("price %d of %s comes after %d", n, key, was)
			}
			last[key] = n
			records++
		}
	}
	if !maps.Equal(last, newest) {
		t.Errorf("the last prices are %v, want %v", last, newest)
	}
	return records
}
