package checkpoint

import (
	"context"
	"errors"
	"math/rand/v2"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
)

func TestLockedModules(t *testing.T) {
	disk := faulty.New()
	files := disk.Process()
	ctx := context.Background()
	if got, err := ReadLocked(ctx, files, "/ck"); err != nil || got != nil {
		t.Fatalf("without a checkpoint: %v, %v", got, err)
	}
	l := open(t, files, "/ck")
	sha := strings.Repeat("ab", 32)
	for _, want := range []map[string]LockedModule{
		{"hourly": {Module: "stock:tumbling", Digest: sha}},
		{"hourly": {Module: "stock:sliding", Digest: sha}, "more": {Module: "stock:top", Digest: strings.Repeat("0", 64)}},
	} {
		if err := l.LockModules(ctx, want); err != nil {
			t.Fatal(err)
		}
		got, err := ReadLocked(ctx, disk.Crash(rand.New(rand.NewPCG(1, 2)), 0).Process(), "/ck")
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("after a crash (-want +got):\n%s%v", diff, err)
		}
	}
	for text, code := range map[string]string{
		`{"version":2,"transforms":{}}`:                                            CodeFuture,
		`{"version":1,"transforms":{"a":{"module":"stock:a","digest":"../../x"}}}`: CodeUnreadable,
		`{"version":1,"tra`: CodeUnreadable,
	} {
		put(t, files, "/ck/"+lockedFile, text)
		_, err := ReadLocked(ctx, files, "/ck")
		var coded *Error
		if !errors.As(err, &coded) || coded.ErrCode != code {
			t.Errorf("%s: %v, want %s", text, err, code)
		}
	}
}

func TestLockedTables(t *testing.T) {
	disk := faulty.New()
	files := disk.Process()
	ctx := context.Background()
	if got, err := ReadTables(ctx, files, "/ck"); err != nil || got != nil {
		t.Fatalf("without a checkpoint: %v, %v", got, err)
	}
	l := open(t, files, "/ck")
	for _, want := range []map[string]LockedTable{
		{"lake": {Columns: []LockedColumn{{"id", "int64 not null"}, {"Größe", "decimal(9,2)"}}}},
		{"lake": {Columns: []LockedColumn{{"id", "int64"}}}, "rows": {Columns: []LockedColumn{{"x", "list<string>"}}}},
	} {
		if err := l.LockTables(ctx, want); err != nil {
			t.Fatal(err)
		}
		got, err := ReadTables(ctx, disk.Crash(rand.New(rand.NewPCG(1, 2)), 0).Process(), "/ck")
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("after a crash (-want +got):\n%s%v", diff, err)
		}
	}
	for text, code := range map[string]string{
		`{"version":2,"sinks":{}}`:                      CodeFuture,
		`{"version":1,"sinks":{"lake":{"columns":[]}}}`: CodeUnreadable,
		`{"version":1,"si`:                              CodeUnreadable,
	} {
		put(t, files, "/ck/"+tablesFile, text)
		_, err := ReadTables(ctx, files, "/ck")
		var coded *Error
		if !errors.As(err, &coded) || coded.ErrCode != code {
			t.Errorf("%s: %v, want %s", text, err, code)
		}
	}
}

func TestHold(t *testing.T) {
	files := faulty.New().Process()
	if _, err := Hold(files, "/ck", "a look"); err == nil {
		t.Error("what is not there is held")
	}
	l := open(t, files, "/ck")
	var locked *durable.LockedError
	if _, err := Hold(files, "/ck", "a look"); !errors.As(err, &locked) {
		t.Errorf("beside a job: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	held, err := Hold(files, "/ck", "a look")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), files, "/ck", options()); !errors.As(err, &locked) {
		t.Errorf("a job beside a look: %v", err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, files, path.Clean("/ck/"))
}
