package checkpoint

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// makeSample makes a checkpoint with batches 0 to 3, the last one decided, on the real file system.
func makeSample(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "c")
	l := open(t, durable.OS(), dir)
	batches(t, l, 0, 3)
	must(t, l.Close())
	return dir
}

// copyOf copies a directory of the real file system.
func copyOf(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "c")
	must(t, os.CopyFS(to, os.DirFS(dir)))
	return to
}

// Each kind of damage gets an error with a code, the file's name and a way out, from Open or Tail; Show and Verify read
// the same checkpoint without complaint of their own and name the same file.
func TestHostileCheckpoints(t *testing.T) {
	write := func(name, text string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
		}
	}
	remove := func(names ...string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			for _, n := range names {
				must(t, os.RemoveAll(filepath.Join(dir, n)))
			}
		}
	}
	instead := func(name string, put func(string) error) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			file := filepath.Join(dir, name)
			must(t, os.RemoveAll(file))
			if err := put(file); err != nil {
				t.Skip(err)
			}
		}
	}
	link := func(file string) error { return os.Symlink("/etc/hostname", file) }
	fifo := func(file string) error { return syscall.Mkfifo(file, 0o600) }
	mkdir := func(file string) error { return os.Mkdir(file, 0o755) }
	huge := func(file string) error {
		if err := os.WriteFile(file, []byte("v1\n"), 0o644); err != nil {
			return err
		}
		return os.Truncate(file, maxRecord+1)
	}
	sample := makeSample(t)
	for name, tc := range map[string]struct {
		damage func(*testing.T, string)
		code   string
		file   string
	}{
		"no metadata":              {remove("metadata"), CodeMetadataMissing, "metadata"},
		"metadata empty":           {write("metadata", ""), CodeMetadata, "metadata"},
		"metadata cut":             {write("metadata", `{"id":"9538ada3-`), CodeMetadata, "metadata"},
		"metadata of another form": {write("metadata", `{"id":"../../x"}`), CodeMetadata, "metadata"},
		"metadata a link":          {instead("metadata", link), CodeKind, "metadata"},
		"metadata a directory":     {instead("metadata", mkdir), CodeKind, "metadata"},
		"plan missing":             {remove("offsets/1"), CodeGap, "offsets/1"},
		"plans missing":            {remove("offsets/1", "offsets/2", "commits/1", "commits/2"), CodeGap, "offsets/1"},
		"decision missing":         {remove("commits/1"), CodeGap, "commits/1"},
		"two decisions missing":    {remove("commits/2", "commits/3"), CodeGap, "commits/2"},
		"all decisions missing":    {remove("commits"), CodeGap, "commits/0"},
		"all plans missing":        {remove("offsets"), CodeNoPlan, "commits/0"},
		"last plan missing":        {remove("offsets/3"), CodeNoPlan, "commits/3"},
		"decision without a plan":  {write("commits/7", "v1\n{}"), CodeNoPlan, "commits/7"},
		"a plan far ahead":         {write("offsets/7", "v1\n{}\n1"), CodeGap, "offsets/4"},
		"an empty plan":            {write("offsets/2", ""), CodeUnreadable, "offsets/2"},
		"an empty decision":        {write("commits/2", ""), CodeUnreadable, "commits/2"},
		"last decision empty":      {write("commits/3", ""), CodeTorn, "commits/3"},
		"last decision cut":        {write("commits/3", "v1\n{\"nextBatch"), CodeTorn, "commits/3"},
		"last plan cut, decided":   {write("offsets/3", "v1\n{\"batch"), CodeUnreadable, "offsets/3"},
		"last plan with a tail":    {write("offsets/3", "v1\n{} x\n1"), CodeUnreadable, "offsets/3"},
		"last plan huge":           {instead("offsets/3", huge), CodeUnreadable, "offsets/3"},
		"last decision huge":       {instead("commits/3", huge), CodeTorn, "commits/3"},
		"last plan in v2":          {write("offsets/3", "v2\n{}\n0:1"), CodeFuture, "offsets/3"},
		"last decision in v2":      {write("commits/3", "v2\n{}"), CodeFuture, "commits/3"},
		"a batch with two names":   {write("offsets/03", "v1\n{}\n1"), CodeUnreadable, "offsets/03"},
		"a plan a link":            {instead("offsets/3", link), CodeKind, "offsets/3"},
		"a decision a fifo":        {instead("commits/3", fifo), CodeKind, "commits/3"},
		"a plan a directory":       {instead("offsets/2", mkdir), CodeKind, "offsets/2"},
		"a log a link":             {instead("offsets", func(f string) error { return os.Symlink("/etc", f) }), CodeKind, "offsets"},
		"a log a file":             {instead("commits", func(f string) error { return os.WriteFile(f, nil, 0o600) }), CodeKind, "commits"},
		"the floor a directory":    {instead("retained", mkdir), CodeKind, "retained"},
		"the owner a directory":    {instead("wasmill.json", mkdir), CodeKind, "wasmill.json"},
		"the lock a link":          {instead("lock", link), CodeKind, "lock"},
		"the lock a fifo":          {instead("lock", fifo), CodeKind, "lock"},
		"another job's":            {write("wasmill.json", `{"version":1,"job":"arrivals"}`), CodeOtherJob, "wasmill.json"},
		"a newer directory":        {write("wasmill.json", `{"version":2,"name":{}}`), CodeFuture, "wasmill.json"},
		"owner cut":                {write("wasmill.json", `{"version":1,`), CodeUnreadable, "wasmill.json"},
		"floor cut":                {write("retained", `{"version":1,`), CodeUnreadable, "retained"},
		"floor below zero":         {write("retained", `{"version":1,"from":-4}`), CodeUnreadable, "retained"},
		"floor too high":           {write("retained", `{"version":1,"from":9}`), CodeNoPlan + CodeGap, "offsets/9"},
		"floor in a newer format":  {write("retained", `{"version":7}`), CodeFuture, "retained"},
		"Spark's plan":             {write("offsets/3", "v1\n{\"conf\":{\"spark.sql.shuffle.partitions\":\"1\"}}\n1\n2"), CodeForeign, "offsets/3"},
		"Spark's decision":         {write("commits/3", "v1\n{\"nextBatchWatermarkMs\":0}"), CodeForeign, "commits/3"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyOf(t, sample)
			tc.damage(t, dir)
			err := openAndTail(t, dir)
			if err == nil || !strings.Contains(tc.code, codeOf(err)) || !strings.Contains(err.Error(), tc.file) {
				t.Errorf("open: %v (%s), want %s about %s", err, codeOf(err), tc.code, tc.file)
			}
			if h, ok := err.(interface{ Hint() string }); !ok || h.Hint() == "" {
				t.Errorf("no way out: %v", err)
			}
			s, err := Show(t.Context(), durable.OS(), dir)
			if err != nil {
				t.Errorf("show: %v", err)
			} else if s.Words == "" {
				t.Error("show says nothing")
			}
			r, err := Verify(t.Context(), durable.OS(), dir)
			if err != nil {
				t.Fatalf("verify: %v", err)
			}
			if tc.code == CodeOtherJob {
				return // a matter of who opens it
			}
			for _, f := range r.Findings {
				if f.File == tc.file && strings.Contains(tc.code, f.Code) && f.Message != "" && f.WayOut != "" {
					return
				}
			}
			t.Errorf("verify does not name %s: %+v", tc.file, r.Findings)
		})
	}
}

func openAndTail(t *testing.T, dir string) error {
	t.Helper()
	l, err := Open(t.Context(), durable.OS(), dir, options())
	if err != nil {
		return err
	}
	defer func() { must(t, l.Close()) }()
	_, _, err = l.Tail(t.Context())
	return err
}

func codeOf(err error) string {
	if c, ok := err.(interface{ Code() string }); ok {
		return c.Code()
	}
	return "none"
}

// Names that are no decimal numbers are no log entries.
func TestOtherNamesAreIgnored(t *testing.T) {
	dir := makeSample(t)
	for _, name := range []string{".4.0badcafe.tmp", "_x", "4.tmp", "-1", "+5", "4 ", "0x10", "9999999999999999999999", ".3.crc", "five"} {
		for _, log := range []string{"offsets", "commits"} {
			must(t, os.WriteFile(filepath.Join(dir, log, name), []byte("junk"), 0o644))
		}
	}
	must(t, openAndTail(t, dir))
	r, err := Verify(t.Context(), durable.OS(), dir)
	if err != nil || !r.OK() || r.Plans != 4 || r.Decisions != 4 {
		t.Errorf("verify: %+v, %v", r, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "offsets", ".4.0badcafe.tmp")); err == nil {
		t.Error("the half-written file is still there")
	}
}

func TestADirectoryThatIsNone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	_, err := Open(t.Context(), durable.OS(), file, options())
	wantCode(t, "open a file", err, CodeIO, file)
	_, err = Open(t.Context(), durable.OS(), file+"/below", options())
	wantCode(t, "open below a file", err, CodeIO, file)
	empty := t.TempDir()
	_, err = Show(t.Context(), durable.OS(), empty)
	wantCode(t, "show an empty directory", err, CodeMissing, empty)
	_, err = Verify(t.Context(), durable.OS(), empty+"/none")
	wantCode(t, "verify what is not there", err, CodeMissing, empty)
	err = Resolve(t.Context(), durable.OS(), empty+"/none", 0, "lake", Skip, options())
	wantCode(t, "resolve what is not there", err, CodeMissing, empty)
	if entries, err := os.ReadDir(empty); err != nil || len(entries) > 0 {
		t.Errorf("something was made: %v, %v", entries, err)
	}
}

const holdEnv = "CHECKPOINT_TEST_HOLD"

// TestMain lets a test start this binary as a second process that holds a checkpoint until its input ends.
func TestMain(m *testing.M) {
	dir := os.Getenv(holdEnv)
	if dir == "" {
		os.Exit(m.Run())
	}
	opts := options()
	opts.Holder = "pid 4711, host gateway"
	l, err := Open(context.Background(), durable.OS(), dir, opts)
	if err != nil {
		os.Stdout.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	os.Stdout.WriteString("held\n")
	_, _ = os.Stdin.Read(make([]byte, 1))
	_ = l.Close()
}

// A second process is refused and told who holds the checkpoint; when the first is killed the lock is free.
func TestTwoProcesses(t *testing.T) {
	dir := makeSample(t)
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), holdEnv+"="+dir)
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	b := make([]byte, 100)
	n, err := out.Read(b)
	if err != nil || string(b[:n]) != "held\n" {
		t.Fatalf("the other process said %q, %v", b[:n], err)
	}
	_, err = Open(t.Context(), durable.OS(), dir, options())
	wantCode(t, "open", err, CodeLocked, "pid 4711, host gateway")
	_, err = Repair(t.Context(), durable.OS(), dir, RepairRequest{Choice: Rename, Job: "x", Apply: true, Options: options()})
	wantCode(t, "repair", err, CodeLocked, "delays")
	err = Resolve(t.Context(), durable.OS(), dir, 3, "lake", Skip, options())
	wantCode(t, "resolve", err, CodeLocked, "delays")
	if _, err := Show(t.Context(), durable.OS(), dir); err != nil {
		t.Errorf("show: %v", err)
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	_ = in.Close()
	must(t, openAndTail(t, dir))
}
