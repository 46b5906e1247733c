package checkpoint

import (
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
)

// damaged makes a checkpoint with batches 0 to 5 and damages it.
func damaged(t *testing.T, damage func(files durable.Files)) *faulty.FS {
	t.Helper()
	f, files := memory()
	l := open(t, files, "c")
	batches(t, l, 0, 5)
	must(t, l.Close())
	damage(files)
	return f
}

func removed(names ...string) func(durable.Files) {
	return func(files durable.Files) {
		for _, n := range names {
			if err := files.Remove("c/" + n); err != nil {
				panic(err)
			}
			if err := files.SyncDir(path.Dir("c/" + n)); err != nil {
				panic(err)
			}
		}
	}
}

func torn(name string) func(durable.Files) {
	return func(files durable.Files) {
		removed(name)(files)
		if err := durable.WriteFile(files, "c/"+name, []byte("v1\n{")); err != nil {
			panic(err)
		}
		if err := files.SyncDir(path.Dir("c/" + name)); err != nil {
			panic(err)
		}
	}
}

func both(a, b func(durable.Files)) func(durable.Files) {
	return func(files durable.Files) { a(files); b(files) }
}

type repairCase struct {
	name   string
	damage func(durable.Files)
	offers string // choices, the best first
	choice Choice
	tail   string // after the repair
}

func repairCases() []repairCase {
	return []repairCase{
		{"torn decision", torn("commits/5"), "move-torn", MoveTorn, "plan 5"},
		{"torn plan", both(removed("commits/5"), torn("offsets/5")), "move-torn", MoveTorn, "plan 4 decided"},
		{"gap far behind", removed("offsets/1", "commits/1"), "forget rewind", Forget, "plan 5 decided"},
		{"gap far behind, rewound", removed("offsets/1", "commits/1"), "forget rewind", Rewind, "plan 0 decided"},
		{"unreadable far behind", torn("offsets/2"), "forget rewind", Forget, "plan 5 decided"},
		{"gap near the end", removed("offsets/4"), "rewind", Rewind, "plan 3 decided"},
		{"decision missing", removed("commits/4"), "rewind", Rewind, "plan 3 decided"},
		{"two decisions missing", removed("commits/4", "commits/5"), "rewind", Rewind, "plan 3 decided"},
		{"last plan missing", removed("offsets/5"), "rewind", Rewind, "plan 4 decided"},
		{"last plan unreadable", torn("offsets/5"), "rewind", Rewind, "plan 4 decided"},
		{"first decision missing", removed("commits/0"), "forget rewind", Rewind, "none"},
		{"no metadata", removed("metadata"), "restore-metadata", RestoreMetadata, "plan 5 decided"},
		{"no metadata and a gap", both(removed("metadata"), removed("commits/4")), "restore-metadata rewind", RestoreMetadata, ""},
		{"a checksum left over", func(files durable.Files) {
			if err := durable.WriteFile(files, "c/commits/.6.crc", []byte("crc")); err != nil {
				panic(err)
			}
		}, "clean", Clean, "plan 5 decided"},
	}
}

func (c repairCase) request(apply bool) RepairRequest {
	opts := options()
	opts.Unique = counting()
	return RepairRequest{Choice: c.choice, ID: testID, Apply: apply, Options: opts}
}

func TestRepair(t *testing.T) {
	for _, tc := range repairCases() {
		t.Run(tc.name, func(t *testing.T) {
			f := damaged(t, tc.damage)
			files := f.Process()
			r, err := Verify(t.Context(), files, "c")
			must(t, err)
			var offers []string
			for _, o := range r.Offers {
				offers = append(offers, string(o.Choice))
				if o.Does == "" || o.Risk == "" {
					t.Errorf("%s says too little: %+v", o.Choice, o)
				}
			}
			if got := strings.Join(offers, " "); got != tc.offers {
				t.Fatalf("offered %q, want %q", got, tc.offers)
			}

			before := f.Ops()
			f.StartTrace()
			dry, err := Repair(t.Context(), files, "c", tc.request(false))
			must(t, err)
			for _, op := range strings.Fields(f.Trace()) {
				if op == "write" || op == "rename" || op == "remove" || op == "link" {
					t.Fatalf("a dry run (%d operations) changes something:\n%s", f.Ops()-before, f.Trace())
				}
			}
			done, err := Repair(t.Context(), files, "c", tc.request(true))
			must(t, err)
			if diff := cmp.Diff(dry.Steps, done.Steps); diff != "" || len(done.Steps) == 0 {
				t.Errorf("the dry run said something else: %s", diff)
			}
			if text := read(t, files, "c/"+done.Record); !strings.Contains(text, `"choice":"`+string(tc.choice)+`"`) {
				t.Errorf("record: %s", text)
			}
			if tc.tail != "" {
				wantTail(t, f.Crash(nil, 0).Process(), tc.tail)
			}
		})
	}
}

func wantTail(t *testing.T, files durable.Files, want string) {
	t.Helper()
	l := open(t, files, "c")
	if got := tailWords(l.Tail(t.Context())); got != want {
		t.Errorf("tail: %s, want %s", got, want)
	}
	must(t, l.Close())
	r, err := Verify(t.Context(), files, "c")
	must(t, err)
	if !r.OK() {
		t.Errorf("findings: %+v", r.Findings)
	}
}

// After a repair that a power cut ended, what is then offered leads to the same end.
func TestPowerCutInRepair(t *testing.T) {
	for _, tc := range repairCases() {
		if tc.tail == "" {
			continue
		}
		base := damaged(t, tc.damage)
		for n, complete := 1, false; !complete; n++ {
			for when := faulty.Before; when <= faulty.After; when++ {
				f := base.Clone()
				f.StopAtChange(n, when)
				_, err := Repair(t.Context(), f.Process(), "c", tc.request(true))
				complete = err == nil
				finishRepair(t, tc, f.Crash(rand.New(rand.NewPCG(uint64(n), uint64(when))), 0.5))
				if t.Failed() {
					t.Fatalf("%s, change %d (%d)", tc.name, n, when)
				}
			}
		}
	}
}

// finishRepair takes what is offered for the state that a repair was left in.
func finishRepair(t *testing.T, tc repairCase, f *faulty.FS) {
	t.Helper()
	r, err := Verify(t.Context(), f.Process(), "c")
	must(t, err)
	if len(r.Offers) > 0 {
		req := tc.request(true)
		req.Options.Unique = durable.Unique
		req.Choice = r.Offers[0].Choice
		if tc.choice == Rewind && req.Choice == Forget {
			req.Choice = Rewind
		}
		_, err = Repair(t.Context(), f.Process(), "c", req)
		must(t, err)
	}
	want := tc.tail
	r, err = Verify(t.Context(), f.Process(), "c")
	must(t, err)
	if r.Plans > r.Decisions && tc.choice == Rewind {
		want = fmt.Sprintf("plan %d", r.Plans-1) // the first half has left a log that is whole
	}
	wantTail(t, f.Process(), want)
}

func TestRepairRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		damage func(durable.Files)
		req    RepairRequest
		code   string
		words  string
	}{
		"nothing is wrong":      {func(durable.Files) {}, RepairRequest{Choice: Rewind}, CodeInvalid, "there is nothing to repair"},
		"another choice fits":   {torn("commits/5"), RepairRequest{Choice: Rewind}, CodeInvalid, "offered is move-torn"},
		"an unknown choice":     {torn("commits/5"), RepairRequest{Choice: "magic"}, CodeInvalid, "magic"},
		"an id of another form": {removed("metadata"), RepairRequest{Choice: RestoreMetadata, ID: "7"}, CodeInvalid, "no UUID"},
		"no id":                 {removed("metadata"), RepairRequest{Choice: RestoreMetadata}, CodeInvalid, "restore-metadata needs the query id"},
		"a job without a name":  {func(durable.Files) {}, RepairRequest{Choice: Rename}, CodeInvalid, "without a name"},
		"a newer format": {both(removed("offsets/5"), func(files durable.Files) {
			if err := durable.WriteFile(files, "c/offsets/5", []byte("v2\n{}")); err != nil {
				panic(err)
			}
		}), RepairRequest{Choice: Rewind}, CodeFuture, "offsets/5"},
	} {
		for _, apply := range []bool{false, true} {
			f := damaged(t, tc.damage)
			tc.req.Apply, tc.req.Options = apply, options()
			_, err := Repair(t.Context(), f.Process(), "c", tc.req)
			wantCode(t, name, err, tc.code, tc.words)
		}
	}
}

// With the oldest batches gone, a log cannot be rewound to where no batch could be recovered.
func TestNoRewindIntoNothing(t *testing.T) {
	f := damaged(t, func(files durable.Files) {
		put(t, files, "c/retained", `{"version":1,"from":3}`)
		removed("commits/4", "commits/5")(files)
	})
	r, err := Verify(t.Context(), f.Process(), "c")
	must(t, err)
	if len(r.Offers) != 0 {
		t.Errorf("offers: %+v", r.Offers)
	}
	_, err = Repair(t.Context(), f.Process(), "c", RepairRequest{Choice: Rewind, Options: options()})
	wantCode(t, "rewind", err, CodeInvalid, "checkpoint fork")
}

func TestRenameGivesTheCheckpointToTheJob(t *testing.T) {
	f := damaged(t, func(durable.Files) {})
	opts := options()
	opts.Job = "departures"
	_, err := Open(t.Context(), f.Process(), "c", opts)
	wantCode(t, "open", err, CodeOtherJob, "delays")
	_, err = Repair(t.Context(), f.Process(), "c", RepairRequest{Choice: Rename, Job: "departures", Apply: true, Options: opts})
	must(t, err)
	l, err := Open(t.Context(), f.Process(), "c", opts)
	must(t, err)
	must(t, l.Close())
}

// The same ways out for checkpoints of Spark's.
func TestRepairSpark(t *testing.T) {
	for _, tc := range []struct {
		name   string
		remove []string
		choice Choice
		last   BatchID
	}{
		{"a-json-to-parquet", []string{"offsets/21"}, Rewind, 20},
		{"a-json-to-parquet", []string{"offsets/3"}, Forget, 22},
		{"b1-killed-in-task", []string{"commits/10"}, Rewind, 9},
		{"g-kafka-source", []string{"metadata"}, RestoreMetadata, 2},
	} {
		files, dir := durable.OS(), spark(t, tc.name)
		for _, n := range tc.remove {
			must(t, files.Remove(path.Join(dir, n)))
		}
		r, err := Verify(t.Context(), files, dir)
		must(t, err)
		if r.OK() || len(r.Offers) == 0 || r.Offers[0].Choice != tc.choice {
			t.Errorf("%s without %v: %+v", tc.name, tc.remove, r)
			continue
		}
		_, err = Repair(t.Context(), files, dir, RepairRequest{Choice: tc.choice, ID: testID, Apply: true, Options: options()})
		must(t, err)
		s, err := Show(t.Context(), files, dir)
		must(t, err)
		if len(s.Findings) > 0 || s.LastDecision != tc.last || s.LastPlan != tc.last {
			t.Errorf("%s without %v: %+v", tc.name, tc.remove, s)
		}
		if r, err = Verify(t.Context(), files, dir); err != nil || !r.OK() {
			t.Errorf("%s without %v: %+v, %v", tc.name, tc.remove, r, err)
		}
	}
}
