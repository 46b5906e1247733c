package examples

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// tablesTally counts what was done to all jobs of a test.
type tablesTally struct {
	at       map[string]int // kills by kind
	cuts     map[string]int // connections cut, servers and brokers killed
	ended    map[string]int // ways in which a run ended by itself after that
	journals int            // kills that left a journal of SQLite, which the next start has to roll back
	pairs    map[string]*pairTally
}

// pairTally counts what was done to the jobs over one kind of target, or a pair of kinds.
type pairTally struct {
	at                            map[string]int // kills by kind
	kills, cuts, servers, brokers int
	tables                        int
	disturbed                     bool
}

// pairOf names the kinds of targets of a combination, of which upserts are no kind of their own.
func pairOf(kinds []string) string {
	var bases []string
	for _, kind := range kinds {
		base, _, _ := strings.Cut(kind, " ")
		bases = append(bases, base)
	}
	slices.Sort(bases)
	return strings.Join(slices.Compact(bases), " + ")
}

// pair is the tally of a combination's kinds.
func (a *tablesTally) pair(kinds []string) *pairTally {
	name := pairOf(kinds)
	if a.pairs[name] == nil {
		a.pairs[name] = &pairTally{at: map[string]int{}}
	}
	return a.pairs[name]
}

// tablesRun kills one combination after the other, prints counts, and demands that every point was met.
func tablesRun(t *testing.T, combinations [][]string, pg *pgServer, bus *broker, also func(k *tablesKill, t *testing.T)) {
	rng := newRand(t)
	all := &tablesTally{at: map[string]int{}, cuts: map[string]int{}, ended: map[string]int{}, pairs: map[string]*pairTally{}}
	var before *proxy
	if bus != nil {
		before = startProxy(t, bus)
	}
	want := tablesKills(t)
	total, tables := 0, 0
	var missed []string
	for i, kinds := range combinations {
		began := time.Now()
		k := &tablesKill{kinds: kinds, rng: rng, all: all, pair: all.pair(kinds)}
		if slices.ContainsFunc(kinds, func(kind string) bool { return strings.HasPrefix(kind, toPostgres) }) {
			k.pg = pg
		}
		if slices.Contains(kinds, toKafka) {
			k.bus, k.proxy = bus, before
		}
		k.slaughter(t, max((want-total+len(combinations)-i-1)/(len(combinations)-i), 1))
		if also != nil {
			also(k, t)
		}
		k.keep(t)
		k.pair.tables += k.tables
		total, tables = total+k.killed, tables+k.tables
		if left := k.unmet(); want >= 100 && len(left) > 0 {
			missed = append(missed, fmt.Sprintf("%s: no kill was at %q", k.name(), left))
		}
		t.Logf("%4d kills over %2d tables in %4.1f s: %s", k.killed, k.tables, time.Since(began).Seconds(), k.name())
	}
	all.report(t)
	t.Logf("%d kills over %d tables and %d combinations, every table equal to its oracle", total, tables, len(combinations))
	if total < want || missed != nil {
		t.Errorf("%d kills, %d were asked for; %s", total, want, strings.Join(missed, "; "))
	}
}

// report prints counts by point, with all operations on one kind of file in one line, and by pair. A pair without kills is an error.
func (a *tablesTally) report(t *testing.T) {
	t.Helper()
	sums := map[string]int{}
	for p, n := range a.at {
		if op, file, ok := strings.Cut(p, " "); ok && strings.Contains(op, ":") && strings.Contains(file, "/") {
			p = file
		}
		sums[p] += n
	}
	for _, p := range slices.Sorted(maps.Keys(sums)) {
		t.Logf("%4d kills: %s", sums[p], p)
	}
	for _, p := range slices.Sorted(maps.Keys(a.cuts)) {
		t.Logf("%4d times: %s", a.cuts[p], p)
	}
	t.Logf("%d kills left a journal of SQLite behind; ended by itself after a cut: %s", a.journals, counts(a.ended))
	t.Logf("%6s %6s %8s %8s %7s  targets", "kills", "cuts", "servers", "brokers", "tables")
	for _, name := range slices.Sorted(maps.Keys(a.pairs)) {
		p := a.pairs[name]
		t.Logf("%6d %6d %8d %8d %7d  %s", p.kills, p.cuts, p.servers, p.brokers, p.tables, name)
		if p.kills == 0 {
			t.Errorf("%s: no kill", name)
		}
	}
}

// TestTablesPairs: the two tests that kill have each kind of target alone, each pair of kinds, and an upsert in each pair that can
// have one.
func TestTablesPairs(t *testing.T) {
	have, upserts := map[string]bool{}, map[string]bool{}
	for _, kinds := range slices.Concat(alone, servers) {
		have[pairOf(kinds)] = true
		upserts[pairOf(kinds)] = upserts[pairOf(kinds)] || slices.ContainsFunc(kinds, keeps)
	}
	all := []string{toDelta, toFiles, toKafka, toPostgres, toSQLite}
	for i, a := range all {
		if a != toKafka && !have[a] { // TestKafkaKill kills what publishes to topics alone
			t.Errorf("nothing is killed that publishes to %s alone", a)
		}
		for _, b := range all[i+1:] {
			if !have[a+" + "+b] {
				t.Errorf("nothing is killed that publishes to %s and %s", a, b)
			}
			if a != toFiles && b != toFiles && !upserts[a+" + "+b] {
				t.Errorf("nothing is killed that publishes to %s and %s with an upsert", a, b)
			}
		}
	}
}

var askedFor = regexp.MustCompile(`WASMILL_TABLES_KILLS(?:="\$\{WASMILL_TABLES_KILLS:-|=)([0-9]+)`)

// TestTablesAskedFor: the lanes of CI ask for 300 kills together. Each of them fails where there are fewer than it asks for.
func TestTablesAskedFor(t *testing.T) {
	total := 0
	for _, lane := range []string{"test", "real"} {
		text, err := os.ReadFile(filepath.Join("..", ".ci", lane))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range askedFor.FindAllStringSubmatch(string(text), -1) {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				t.Fatal(err)
			}
			total += n
		}
	}
	if total < 300 {
		t.Errorf("the lanes of CI ask for %d kills", total)
	}
}
