package pipeline

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/statestore"
)

// stateEnv is a machine with a disk, as commands that look into state have it.
func stateEnv() Env {
	return Env{Files: durable.OS(), Clock: fixedClock{}, Holder: "a test"}
}

type fixedClock struct{}

func (fixedClock) Now() time.Time { return time.Unix(1_700_000_000, 0) }

func (fixedClock) Wait(ctx context.Context, _ time.Duration) error { return ctx.Err() }

// keeper writes a checkpoint with state as the engine does: one key, a counter.
type keeper struct {
	t     *testing.T
	dir   string
	log   *checkpoint.Log
	store *statestore.Store
	// applied gets a word for each batch that was applied in the background.
	applied chan struct{}
	// scratch is where the state is copied while the job runs; nil: it is not looked at.
	scratch func() (string, func() error, error)
}

const keptKey = "k"

func newKeeper(t *testing.T) *keeper {
	t.Helper()
	k := &keeper{t: t, dir: filepath.Join(t.TempDir(), "ck")}
	k.open()
	return k
}

func (k *keeper) open() {
	k.t.Helper()
	env := stateEnv()
	k.applied = make(chan struct{}, 16)
	env.State.Applied = func(int64, int64, int64, time.Duration) { k.applied <- struct{}{} }
	unique := 0
	var err error
	k.log, err = checkpoint.Open(k.t.Context(), env.Files, k.dir, checkpoint.Options{
		Job: "keep", Holder: "the job", NewID: func() string { return "9538ada3-a233-4697-8b02-cc66250189a3" },
		Unique: func() string { unique++; return fmt.Sprintf("%08x", unique) }, Clock: func() int64 { return 1_700_000_000_000 },
	})
	if err != nil {
		k.t.Fatal(err)
	}
	if k.store, err = env.openStore(k.t.Context(), k.dir, k.log.QueryID()); err != nil {
		k.t.Fatal(err)
	}
}

func (k *keeper) close() {
	k.t.Helper()
	if err := errors.Join(k.store.Close(), k.log.Close()); err != nil {
		k.t.Fatal(err)
	}
}

// decide runs a batch up to its decision, which puts the batch's number under the key.
func (k *keeper) decide(n int64) *statestore.Txn {
	k.t.Helper()
	ctx := k.t.Context()
	txn, err := k.store.Begin(ctx, statestore.BatchInfo{
		Batch: n, TimeMS: 1_700_000_000_000 + n, Lanes: 1, Stages: []statestore.Stage{{Name: "count", Tables: []string{"seen"}}},
	})
	if err != nil {
		k.t.Fatal(err)
	}
	entry := statestore.Entry{Group: uint8(abi.KeyGroup([]byte(keptKey))), Table: 0, Key: []byte(keptKey)}
	if err := txn.Lane(0, 0).Put(entry, fmt.Append(nil, n), 0); err != nil {
		k.t.Fatal(err)
	}
	sum, err := txn.Sum(ctx)
	if err != nil {
		k.t.Fatal(err)
	}
	attempt, id := fmt.Sprintf("%08x", 0xa0+n), checkpoint.BatchID(n)
	if err := txn.Write(ctx, attempt); err != nil {
		k.t.Fatal(err)
	}
	d := checkpoint.Decision{
		Batch: id, Digest: fmt.Sprintf("%032x", n), Semantics: 1, State: sum.Digest, StateLast: &id, Attempt: attempt,
		Targets: map[string]checkpoint.TargetOutcome{"out": {Staged: []byte("{}"), Last: id, Digest: fmt.Sprintf("%032x", n)}},
	}
	if err := k.log.WritePlan(ctx, checkpoint.Plan{Batch: id, TimeMS: 1_700_000_000_000 + n}); err != nil {
		k.t.Fatal(err)
	}
	if err := k.log.WriteDecision(ctx, d); err != nil {
		k.t.Fatal(err)
	}
	return txn
}

func (k *keeper) publish(n int64) {
	k.t.Helper()
	mark := map[string]checkpoint.PublishedMark{"out": {Batch: checkpoint.BatchID(n), Digest: fmt.Sprintf("%032x", n)}}
	if err := k.log.NotePublished(k.t.Context(), mark); err != nil {
		k.t.Fatal(err)
	}
}

func (k *keeper) seal(n int64) {
	k.t.Helper()
	txn := k.decide(n)
	k.publish(n)
	if err := k.store.Seal(k.t.Context(), txn); err != nil {
		k.t.Fatal(err)
	}
	txn.Close()
}

// look returns what stands under the key as of a batch, and that batch.
func (k *keeper) look(n checkpoint.BatchID) (value string, batch checkpoint.BatchID, err error) {
	k.t.Helper()
	env := stateEnv()
	env.Scratch = k.scratch
	s, err := OpenState(k.t.Context(), k.dir, env)
	if err != nil {
		return "", 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	v, err := s.View(k.t.Context(), n)
	if err != nil {
		return "", 0, err
	}
	defer v.Close()
	if len(v.Stages) != 1 || v.Stages[0].Name != "count" || len(v.Stages[0].Tables) != 1 || v.Stages[0].Tables[0].Name != "seen" {
		k.t.Fatalf("stages %+v", v.Stages)
	}
	err = v.Under(k.t.Context(), &v.Stages[0].Tables[0], []byte(keptKey), nil, func(r *statestore.Row) error {
		value = string(r.Value)
		return nil
	})
	return value, v.Batch, err
}

func (k *keeper) want(n checkpoint.BatchID, value string, batch checkpoint.BatchID) {
	k.t.Helper()
	got, at, err := k.look(n)
	if err != nil || got != value || at != batch {
		k.t.Errorf("as of %d: %q of batch %d, %v; want %q of batch %d", n, got, at, err, value, batch)
	}
}

func (k *keeper) refuse(n checkpoint.BatchID, code string) {
	k.t.Helper()
	_, _, err := k.look(n)
	if f, ok := errors.AsType[*fault.Error](err); !ok || f.ErrCode != code || f.WayOut == "" {
		k.t.Errorf("as of %d: %v, want %s", n, err, code)
	}
}

// TestStateStopsAtWhatIsSealed: a batch that is decided and not known to be published is no part of what is shown, as it may
// be taken back; once it is, its changes come from its file.
func TestStateStopsAtWhatIsSealed(t *testing.T) {
	k := newKeeper(t)
	k.seal(0)
	k.seal(1)
	k.refuse(checkpoint.NoBatch, CodeStateLocked)
	k.decide(2).Close()
	k.close()
	k.want(checkpoint.NoBatch, "1", 1)
	k.want(0, "0", 0)
	k.refuse(2, CodeStateNotSealed)
	k.open()
	k.publish(2)
	k.close()
	k.want(checkpoint.NoBatch, "2", 2)
	k.want(1, "1", 1)
}

// TestStateBesideTheJob: while the job has its store open, what it has written down is shown, and nothing of it changes.
func TestStateBesideTheJob(t *testing.T) {
	k := newKeeper(t)
	temp := t.TempDir()
	k.scratch = func() (string, func() error, error) {
		dir, err := os.MkdirTemp(temp, "")
		return dir, func() error { return os.RemoveAll(dir) }, err
	}
	k.seal(0)
	k.seal(1)
	k.want(checkpoint.NoBatch, "1", 1)
	k.want(0, "0", 0)
	txn := k.decide(2)
	k.want(checkpoint.NoBatch, "1", 1)
	k.refuse(2, CodeStateNotSealed)
	stray := filepath.Join(k.dir, "state", "changelog", "2-cafecafe")
	good, err := os.ReadFile(filepath.Join(k.dir, "state", "changelog", "2-000000a2"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(stray, good, 0o600); err != nil { // of an attempt before, until the batch is sealed
		t.Fatal(err)
	}
	k.publish(2)
	k.want(checkpoint.NoBatch, "2", 2)
	if err := k.store.Seal(t.Context(), txn); err != nil {
		t.Fatal(err)
	}
	txn.Close()
	k.want(2, "2", 2)
	first, away := filepath.Join(k.dir, "state", "changelog", "0-000000a0"), filepath.Join(k.dir, "away")
	if err := os.Rename(first, away); err != nil {
		t.Fatal(err)
	}
	k.refuse(1, CodeStateNotRetained)
	k.refuse(checkpoint.NoBatch, CodeStateMissing)
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
	if err := os.Rename(away, first); err != nil {
		t.Fatal(err)
	}
	k.close()
	k.want(checkpoint.NoBatch, "2", 2)
}

// TestStateNames: what is wrong has a code and names the file.
func TestStateNames(t *testing.T) {
	k := newKeeper(t)
	k.seal(0)
	k.decide(1).Close()
	k.publish(1)
	k.close()
	file := filepath.Join(k.dir, "state", "changelog", "1-000000a1")
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		content []byte
		code    string
	}{
		"gone":      {nil, CodeStateMissing},
		"cut off":   {good[:len(good)-3], CodeStateDamaged},
		"flipped":   {append(append([]byte{}, good[:30]...), append([]byte{good[30] ^ 1}, good[31:]...)...), CodeStateDamaged},
		"as it was": {good, ""},
	} {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if c.content != nil {
			if err := os.WriteFile(file, c.content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		found, err := CheckState(t.Context(), durable.OS(), k.dir)
		if err != nil {
			t.Fatal(err)
		}
		if c.code == "" {
			if len(found) != 0 {
				t.Errorf("%s: %v", name, found)
			}
			continue
		}
		if len(found) != 1 || found[0].Code != c.code || found[0].File != "state/changelog/1-000000a1" || found[0].WayOut == "" {
			t.Errorf("%s: %+v, want %s", name, found, c.code)
		}
		k.refuse(checkpoint.NoBatch, c.code)
		if err := os.WriteFile(file, good, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	k.want(checkpoint.NoBatch, "1", 1)
}

// TestStateThatIsNotKept names the oldest batch that is.
func TestStateThatIsNotKept(t *testing.T) {
	k := newKeeper(t)
	for n := range int64(4) {
		k.seal(n)
	}
	k.close()
	k.open()
	for n := k.store.Last() + 1; n < 4; n++ {
		d, err := k.log.Decision(t.Context(), checkpoint.BatchID(n))
		if err != nil {
			t.Fatal(err)
		}
		if err := k.store.Load(t.Context(), n, d.Attempt, d.State); err != nil {
			t.Fatal(err)
		}
	}
	for k.store.Applied() < 3 {
		<-k.applied
	}
	if err := k.store.Retain(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	k.close()
	k.refuse(0, CodeStateNotRetained)
	k.want(2, "2", 2)
	k.want(3, "3", 3)
}

func TestStateOfNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ck")
	if _, err := OpenState(t.Context(), dir, stateEnv()); err == nil || !strings.Contains(err.Error(), "ck") {
		t.Errorf("without a checkpoint: %v", err)
	}
	k := newKeeper(t)
	k.close()
	if err := os.RemoveAll(filepath.Join(k.dir, "state")); err != nil {
		t.Fatal(err)
	}
	k.refuse(checkpoint.NoBatch, CodeStateNone)
}

// TestOtherKeyGroups: a checkpoint with other key groups is not gone on with, whatever is allowed.
func TestOtherKeyGroups(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ck")
	j := parseJob(t, "apiVersion: wasmill/v1\nkind: Job\nmetadata: {name: keep}\nspec:\n  checkpoint: "+dir+
		"\n  sources: [{name: made, generator: {records: 1}}]\n  sinks: [{name: screen, from: [made], stdout: {}}]\n")
	env := stateEnv()
	env.AllowChanges, env.Stdout = true, io.Discard
	env.NewID, env.Unique = func() string { return testQuery }, func() string { return "0badcafe" }
	p, err := Load(t.Context(), j, env)
	if err != nil {
		t.Fatal(err)
	}
	before := bytes.Replace(p.Canonical, []byte(`"groups":64`), []byte(`"groups":128`), 1)
	sha := fmt.Sprintf("%x", sha256.Sum256(before))
	l, err := checkpoint.Open(t.Context(), env.Files, dir, p.logOptions())
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(l.PutRevision(t.Context(), sha, before), l.WritePlan(t.Context(), checkpoint.Plan{}),
		l.WriteDecision(t.Context(), checkpoint.Decision{Digest: strings.Repeat("0", 32), Revision: sha, Semantics: 1, Attempt: "0badcafe"}), l.Close())
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Open(t.Context())
	if f, ok := errors.AsType[*fault.Error](err); !ok || f.ErrCode != CodeIncompatible || !strings.Contains(err.Error(), "128 key groups become 64") {
		t.Errorf("it opens with %v", err)
	}
	v, err := p.Preview(t.Context())
	if err != nil || v.Compatible() {
		t.Errorf("plan finds it compatible: %v", err)
	}
}

// full is a disk on which nothing more can be made.
type full struct{ durable.Files }

func (full) Create(name string) (durable.File, error) {
	return nil, &fs.PathError{Op: "create", Path: name, Err: syscall.ENOSPC}
}

func (full) MkdirAll(name string) error {
	return &fs.PathError{Op: "mkdir", Path: name, Err: syscall.ENOSPC}
}

// TestStateOnAFullDisk: trouble of the disk has a code and a way out, where it comes at the start and in the midst of a batch.
func TestStateOnAFullDisk(t *testing.T) {
	env := stateEnv()
	env.Files = full{env.Files}
	_, err := env.openStore(t.Context(), filepath.Join(t.TempDir(), "ck"), testQuery)
	for _, err := range []error{err, fmt.Errorf("batch 3: stage: %w", &engine.StateError{Op: "write the changes of the state", Err: syscall.ENOSPC})} {
		f, ok := errors.AsType[*fault.Error](stateFault(err))
		if !ok || f.ErrCode != CodeState || f.WayOut == "" || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%v", err)
		}
	}
	stopped := &engine.StateError{Op: "seal the state", Err: context.Canceled}
	if err := stateFault(stopped); err != error(stopped) {
		t.Errorf("a job that is stopped: %v", err)
	}
}
