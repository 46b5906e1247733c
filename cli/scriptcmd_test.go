package cli_test

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptSetup gives scripts the repository, for its modules, and a cache of their own.
func scriptSetup(env *testscript.Env) error {
	repo, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	env.Setenv("REPO", repo)
	env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, ".cache"))
	return nil
}

// scriptCondition knows [mount]: a file system can be mounted here.
func scriptCondition(cond string) (bool, error) {
	if cond != "mount" {
		return false, fmt.Errorf("unknown condition %q", cond)
	}
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		return false, nil
	}
	dir, err := os.MkdirTemp("", "mount")
	if err != nil {
		return false, err
	}
	defer os.Remove(dir)
	if exec.Command("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", dir).Run() != nil {
		return false, nil
	}
	return true, exec.Command("umount", dir).Run()
}

// running are the programs that `start` started, by name.
type running struct {
	cmd *exec.Cmd
	out io.ReadCloser
}

type runningKey struct{}

// start runs a program in the background and returns when it has written its first line: start NAME COMMAND ...
func start(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: start NAME COMMAND ...")
	}
	cmd := exec.Command(args[1], args[2:]...)
	if path, err := exec.LookPath(filepath.Join(strings.Split(ts.Getenv("PATH"), string(filepath.ListSeparator))[0], args[1])); err == nil {
		cmd.Path, cmd.Err = path, nil
	}
	cmd.Dir, cmd.Env = ts.MkAbs("."), []string{"PATH=" + ts.Getenv("PATH"), "XDG_CACHE_HOME=" + ts.Getenv("XDG_CACHE_HOME")}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	ts.Defer(func() { _ = cmd.Process.Kill() })
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		_ = cmd.Wait()
		ts.Fatalf("%v wrote no line: %v: %s", args[1:], err, stderr.String())
	}
	ts.Value(runningKey{}).(map[string]*running)[args[0]] = &running{cmd, out}
}

// stop asks a program to end, and demands that it ends well: stop NAME
func stop(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: stop NAME")
	}
	r := ts.Value(runningKey{}).(map[string]*running)[args[0]]
	if r == nil {
		ts.Fatalf("%s was not started", args[0])
	}
	ts.Check(r.cmd.Process.Signal(syscall.SIGTERM))
	_, err := io.Copy(io.Discard, r.out)
	ts.Check(err)
	ts.Check(r.cmd.Wait())
}

// shorten cuts a file after so many bytes: shorten FILE BYTES
func shorten(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: shorten FILE BYTES")
	}
	n, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[0]), n))
}

// snapshot writes a list of all files of a directory with their contents' digests: snapshot DIR FILE
func snapshot(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: snapshot DIR FILE")
	}
	var b strings.Builder
	top := ts.MkAbs(args[0])
	ts.Check(filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(top, path)
		if err != nil || d.IsDir() {
			fmt.Fprintf(&b, "%s/\n", rel)
			return err
		}
		content, err := os.ReadFile(path)
		fmt.Fprintf(&b, "%s %x\n", rel, sha256.Sum256(content))
		return err
	}))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(b.String()), 0o600))
}

// mount mounts a file system in memory until the script ends: mount DIR OPTIONS. With remount in the options it changes
// the one that is there.
func mount(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mount DIR OPTIONS")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o700))
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", args[1], "tmpfs", dir).CombinedOutput(); err != nil {
		ts.Fatalf("mount: %v: %s", err, out)
	}
	if !strings.Contains(args[1], "remount") {
		ts.Defer(func() { _ = exec.Command("umount", dir).Run() })
	}
}
