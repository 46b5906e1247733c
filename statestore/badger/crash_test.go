package badger

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/statestore"
)

// crashEnv makes the test binary the process that is killed; its value is an order.
const crashEnv = "WASMILL_STATE_CRASH"

// order is what the killed process does.
type order struct {
	Dir     string
	KillAt  int64 // the point, counted from the start, at which it kills itself; 0 for none
	Batches int64 // to run, if it lives so long
}

// decision is a line of the journal that stands for the checkpoint: what attempt at a batch counts.
type decision struct {
	Batch   int64
	Attempt string
	Digest  string
}

const (
	crashKeys      = 6000
	crashChanges   = 1500
	crashDecisions = 30 // older ones are forgotten, as by retention
)

// crashed child: recover, compare with the oracle, run batches until killed.
func crashChild(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	var points atomic.Int64
	cfg := statestore.Config{
		Files: durable.OS(), Dir: filepath.Join(o.Dir, "state"), Query: "q", Backend: Open, SnapshotBatches: 40,
		Events: statestore.Events{
			Point: func(name string) {
				if points.Add(1) == o.KillAt {
					fmt.Println("point", name)
					_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
					select {}
				}
			},
			Rebuilt: func(snapshot int64, why error) { fmt.Println("rebuilt", snapshot, why) },
			Warning: func(op string, err error) { fmt.Println("warning", op, err) },
		},
	}
	s, err := statestore.Open(context.Background(), cfg)
	if err != nil {
		return err
	}
	made, err := readJournal(o.Dir)
	if err != nil {
		return err
	}
	if err := crashRecover(s, made); err != nil {
		return err
	}
	fmt.Println("recovered", len(made))
	for range o.Batches {
		d, err := crashBatch(s, int64(len(made)))
		if err != nil {
			return err
		}
		made = append(made, d)
	}
	return s.Close()
}

func readJournal(dir string) (made []decision, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "journal"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for line := range bytes.Lines(text) {
		var d decision
		if json.Unmarshal(line, &d) != nil {
			break // cut short
		}
		made = append(made, d)
	}
	return made, err
}

func crashRecover(s *statestore.Store, made []decision) error {
	ctx, last := context.Background(), int64(len(made))-1
	if err := s.Rewind(ctx, last, math.MaxInt64); err != nil {
		return err
	}
	if s.Last() > last {
		return fmt.Errorf("ahead: %d, decided %d", s.Last(), last)
	}
	for n := s.Last() + 1; n <= last; n++ {
		if n <= last-crashDecisions && s.Durable() < n {
			return fmt.Errorf("the decision of batch %d is needed, the newest is %d", n, last)
		}
		if err := s.Load(ctx, n, made[n].Attempt, made[n].Digest); err != nil {
			return err
		}
	}
	if last < 0 {
		return nil
	}
	for _, asOf := range []int64{last, max(last-5, 0)} {
		if err := crashCompare(s, made[:asOf+1]); err != nil && !errors.Is(err, statestore.ErrCompacted) {
			return fmt.Errorf("as of %d: %w", asOf, err)
		}
	}
	return nil
}

// crashChange calls change with what an attempt at a batch does; another attempt does something else.
func crashChange(d decision, change func(key string, value string) error) error {
	random := rand.New(rand.NewPCG(uint64(d.Batch), uint64(len(d.Attempt))+uint64(d.Attempt[0])<<8))
	for range crashChanges {
		key, value := fmt.Sprintf("key %05d", random.IntN(crashKeys)), ""
		if random.IntN(5) > 0 {
			value = fmt.Sprintf("%d %s %s", d.Batch, d.Attempt, strings.Repeat("x", random.IntN(600)))
		}
		if err := change(key, value); err != nil {
			return err
		}
	}
	return nil
}

func crashCompare(s *statestore.Store, made []decision) error {
	want := map[string]string{}
	for _, d := range made {
		_ = crashChange(d, func(key, value string) error {
			want[key] = value
			if value == "" {
				delete(want, key)
			}
			return nil
		})
	}
	v, err := s.At(context.Background(), int64(len(made))-1)
	if err != nil {
		return err
	}
	defer v.Close()
	table, ok := v.Table("stage", "table")
	if !ok {
		return errors.New("the table is not known")
	}
	n, wrong := 0, 0
	err = v.Export(context.Background(), table, func(r *statestore.Row) bool {
		n++
		if want[string(r.Key)] != string(r.Value) {
			wrong++
		}
		return true
	})
	if err == nil && (wrong > 0 || n != len(want)) {
		err = fmt.Errorf("%d entries, want %d; %d are wrong", n, len(want), wrong)
	}
	return err
}

func crashBatch(s *statestore.Store, n int64) (d decision, err error) {
	ctx := context.Background()
	// The process's number stands for chance: another attempt has other content.
	d = decision{Batch: n, Attempt: fmt.Sprintf("%08x", os.Getpid())}
	d.Attempt = string('a'+byte(os.Getpid()%26)) + d.Attempt[1:]
	txn, err := s.Begin(ctx, statestore.BatchInfo{
		Batch: n, TimeMS: n, Lanes: 1, Stages: []statestore.Stage{{Name: "stage", Tables: []string{"table"}}},
	})
	if err != nil {
		return d, err
	}
	defer txn.Close()
	lane := txn.Lane(0, 0)
	err = crashChange(d, func(key, value string) error {
		e := statestore.Entry{Group: key[len(key)-1] % 64, Key: []byte(key)}
		if value == "" {
			return lane.Delete(e)
		}
		return lane.Put(e, []byte(value), 0)
	})
	if err != nil {
		return d, err
	}
	sum, err := txn.Sum(ctx)
	if err != nil {
		return d, err
	}
	d.Digest = sum.Digest
	if err := txn.Write(ctx, d.Attempt); err != nil {
		return d, err
	}
	if err := decide(d); err != nil {
		return d, err
	}
	if err := s.Seal(ctx, txn); err != nil {
		return d, err
	}
	if n%5 == 0 {
		return d, s.Retain(ctx, max(n-10, 0))
	}
	return d, nil
}

func decide(d decision) error {
	line, err := json.Marshal(d)
	if err != nil {
		return err
	}
	_, err = journal.Write(append(line, '\n'))
	return err
}

// journal is opened once by the child.
var journal *os.File

func runCrashChild() int {
	text := os.Getenv(crashEnv)
	var o order
	_ = json.Unmarshal([]byte(text), &o)
	var err error
	if journal, err = os.OpenFile(filepath.Join(o.Dir, "journal"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644); err == nil {
		err = errors.Join(crashChild(text), journal.Close())
	}
	if err != nil {
		fmt.Println("failed", err)
		return 1
	}
	return 0
}

// TestKills kills a process that has state, at named points and at any time, damages a table now and then, and compares
// what the next process finds with an oracle.
func TestKills(t *testing.T) {
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(6, 6))
	rounds := 40
	if testing.Short() {
		rounds = 8
	}
	kills, rebuilt, damagedRounds := map[string]int{}, 0, 0
	for round := range rounds {
		o := order{Dir: dir, Batches: 1000}
		byTime := round%3 == 2
		if !byTime {
			o.KillAt = 1 + random.Int64N(60)
		}
		where, n := crashRound(t, o, byTime, time.Duration(20+random.IntN(250))*time.Millisecond)
		kills[where]++
		rebuilt += n
		if round%8 == 7 && harmOneTable(t, filepath.Join(dir, "state", "badger"), random) {
			damagedRounds++
		}
	}
	if _, n := crashRound(t, order{Dir: dir, Batches: 2}, false, 0); n > 0 {
		rebuilt += n
	}
	made, err := readJournal(dir)
	if err != nil || len(made) < rounds {
		t.Errorf("%d batches, %v", len(made), err)
	}
	t.Logf("%d kills over %d batches: %v; %d tables damaged, %d times built anew", rounds, len(made), kills, damagedRounds, rebuilt)
	if rebuilt < damagedRounds {
		t.Error("a damaged table went unseen")
	}
}

// crashRound runs one process until it is killed, or ends by itself. It returns where it was killed, and how often the
// state was built anew.
func crashRound(t *testing.T, o order, byTime bool, after time.Duration) (where string, rebuilt int) {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashEnv+"="+string(text))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	where = "time"
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		kind, rest, _ := strings.Cut(lines.Text(), " ")
		switch kind {
		case "recovered":
			if byTime {
				time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
			}
		case "point":
			where = rest
		case "rebuilt":
			rebuilt++
		default:
			t.Errorf("%+v: %s", o, lines.Text())
		}
	}
	err = cmd.Wait()
	if o.KillAt == 0 && !byTime {
		if err != nil {
			t.Error(err)
		}
		return "none", rebuilt
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("%+v: ended by %v", o, err)
	}
	return where, rebuilt
}

// harmOneTable flips a bit of a table that the manifest lists, so that it will be read.
func harmOneTable(t *testing.T, dir string, random *rand.Rand) bool {
	t.Helper()
	ids, err := readManifest(osFiles, filepath.Join(dir, manifestName))
	if err != nil || len(ids) == 0 {
		return false
	}
	name := filepath.Join(dir, tableName(ids[random.IntN(len(ids))]))
	b, err := os.ReadFile(name)
	if err != nil || len(b) == 0 {
		t.Fatal(err)
	}
	b[random.IntN(len(b))] ^= 1 << random.IntN(8)
	if err := os.WriteFile(name, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return true
}
