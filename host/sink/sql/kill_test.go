package sql_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/sink/sql"
	"github.com/wasmill/wasmill/host/sink/sql/sqlite"
)

// traced tells of every call of its connections before it is carried out.
type traced struct {
	sql.Database
	say func(call string)
}

func (d *traced) Connect(ctx context.Context, use sql.Use) (sql.Conn, error) {
	d.say("Connect")
	c, err := d.Database.Connect(ctx, use)
	if err != nil {
		return nil, err
	}
	return &tracedConn{Conn: c, say: d.say}, nil
}

type tracedConn struct {
	sql.Conn
	say func(call string)
}

func (c *tracedConn) Query(ctx context.Context, query string, args ...string) ([][]string, error) {
	c.say("Query")
	return c.Conn.Query(ctx, query, args...)
}

func (c *tracedConn) Begin(ctx context.Context) error {
	c.say("Begin")
	return c.Conn.Begin(ctx)
}

func (c *tracedConn) Write(ctx context.Context, b sql.Binding, ch *sql.Changes) error {
	c.say("Write")
	return c.Conn.Write(ctx, b, ch)
}

func (c *tracedConn) Check(ctx context.Context) error {
	c.say("Check")
	return c.Conn.Check(ctx)
}

func (c *tracedConn) Commit(ctx context.Context) error {
	c.say("Commit")
	err := c.Conn.Commit(ctx)
	c.say("Committed")
	return err
}

// childOf is what a process that is to be killed publishes to.
const childOf = "WASMILL_SQL_CHILD"

// TestChild is the process that TestProcessesKilled kills.
func TestChild(t *testing.T) {
	at := os.Getenv(childOf)
	if at == "" {
		t.Skip("no process to be killed")
	}
	w := &world{kind: "postgres", url: at}
	if path, ok := strings.CutPrefix(at, "sqlite:"); ok {
		db, err := sqlite.New("db", path)
		must(t, err)
		w = &world{kind: "sqlite", db: db}
	} else {
		w.db = newPostgresDatabase(t, at)
	}
	say := func(call string) { fmt.Println("call", call) }
	j := newJob(t, w, killedBatches)
	j.asked = j.batches // what was asked for is the parent's to know
	j.pause = func() { say("Decided") }
	target := w.target(t, j.sink, func(cfg *sql.Config) { cfg.Database = &traced{Database: w.db, say: say} })
	must(t, j.live(t.Context(), t, target, func() bool { return false }))
	fmt.Println("call Done")
}

const killedBatches = 200

// TestProcessesKilled kills processes after a random number of calls, each time a new one, until all is published.
func TestProcessesKilled(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		at := w.url
		if w.kind == "sqlite" {
			at = "sqlite:" + w.path
		}
		kills, last := 0, map[string]int{}
		for done := false; !done; {
			var call string
			if call, done = runChild(t, at, 1+rand.IntN(150)); !done {
				kills++
				last[call]++
			}
			if kills > 1000 {
				t.Fatal("no progress")
			}
		}
		j := newJob(t, w, killedBatches)
		n := j.check(t)
		t.Logf("%d processes killed, %d rows, none lost, none doubled; the last that was heard of them: %v", kills, n, last)
	})
}

// runChild kills a process after some calls, and returns the last that it told of.
func runChild(t *testing.T, at string, calls int) (last string, done bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestChild$", "-test.v")
	cmd.Env = append(os.Environ(), childOf+"="+at)
	out, err := cmd.StdoutPipe()
	must(t, err)
	cmd.Stderr = cmd.Stdout
	must(t, cmd.Start())
	var said []string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		said = append(said, lines.Text())
		call, ok := strings.CutPrefix(lines.Text(), "call ")
		if !ok {
			continue
		}
		last = call
		if calls--; calls == 0 {
			must(t, cmd.Process.Signal(syscall.SIGKILL))
		}
	}
	err = cmd.Wait()
	if last == "Done" && err == nil {
		return last, true
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the process ended by itself: %v\n%s", err, strings.Join(said, "\n"))
	}
	return last, false
}

// ownServer starts a server that may be killed, and returns what does that and starts it again.
func ownServer(t *testing.T) (w *world, kill func(start bool)) {
	t.Helper()
	script := os.Getenv("WASMILL_POSTGRES_SCRIPT")
	if script == "" {
		t.Skip("WASMILL_POSTGRES_SCRIPT does not name what starts a server")
	}
	home, err := os.MkdirTemp("", "postgres")
	must(t, err)
	must(t, os.Chmod(home, 0o755))
	do := func(verb string) string {
		t.Helper()
		cmd := exec.Command("bash", script, verb)
		cmd.Env = append(os.Environ(), "POSTGRES_HOME="+home)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", verb, err, out)
		}
		return string(out)
	}
	t.Cleanup(func() {
		do("kill9")
		must(t, os.RemoveAll(home))
	})
	do("start")
	address := ""
	for line := range strings.Lines(do("env")) {
		if a, ok := strings.CutPrefix(strings.TrimSpace(line), "WASMILL_POSTGRES="); ok {
			address = a
		}
	}
	return &world{kind: "postgres", url: address, db: newPostgresDatabase(t, address)}, func(start bool) {
		do("kill9")
		if start {
			do("start")
		}
	}
}

// TestServerKilled kills the server, or ends all connections, before each call of a publishing process in turn.
func TestServerKilled(t *testing.T) {
	w, kill := ownServer(t)
	end := func() {
		w.run(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'wasmill%'")
	}
	for name, hit := range map[string]func(){"killed": func() { kill(true) }, "connections ended": end} {
		t.Run(name, func(t *testing.T) {
			hits, rows, reopens, met := 0, 0, 0, map[string]int{}
			for at := 0; ; at++ {
				w.run(t, "SET client_min_messages = error", "DROP TABLE IF EXISTS out, wasmill_epoch")
				j := newJob(t, w, 2)
				n, was := 0, ""
				say := func(call string) {
					if n == at {
						was = call
						hit()
					}
					n++
				}
				target := w.target(t, j.sink, func(cfg *sql.Config) { cfg.Database = &traced{Database: w.db, say: say} })
				if err := j.live(t.Context(), t, target, func() bool { return false }); err != nil {
					t.Fatalf("%s before call %d (%s): %v", name, at, was, err)
				}
				must(t, target.Close())
				rows += j.check(t)
				reopens += j.reopens
				if was == "" {
					break
				}
				hits++
				met[was]++
			}
			t.Logf("%d times, %d reopenings, %d rows, none lost, none doubled; before %v", hits, reopens, rows, met)
			if met["Commit"] != 2 || met["Committed"] != 2 {
				t.Errorf("not before all: %v", met)
			}
		})
	}
}

// TestServerAway: a server that is away is a fault that passes, while opening, staging and publishing, and nothing is lost.
func TestServerAway(t *testing.T) {
	w, kill := ownServer(t)
	j := newJob(t, w, 2)
	target := w.open(t, j.sink, func(cfg *sql.Config) { cfg.Patience = 2 * time.Second })
	must(t, j.bring(t.Context(), t, target, 0))
	s, err := target.Stage(t.Context(), output(1, "rows", laneOf(t, target, "rows", j.records(1))))
	must(t, err)
	kill(false)
	err = target.Publish(t.Context(), decision(1), s)
	wantFault(t, err, sql.CodeUnreachable)
	if !strings.Contains(err.Error(), "not known") {
		t.Errorf("%v", err)
	}
	_, err = target.Stage(t.Context(), output(1, "rows", laneOf(t, target, "rows", j.records(1))))
	wantFault(t, err, sql.CodeUnreachable)
	_, err = target.Open(t.Context(), owner())
	if f := wantFault(t, err, sql.CodeUnreachable); !f.Passes {
		t.Errorf("%v does not pass", f)
	}
	kill(true)
	p, err := target.Open(t.Context(), owner())
	must(t, err)
	if p.Batch != 0 {
		t.Fatalf("%+v is published", p)
	}
	must(t, j.bring(t.Context(), t, target, checkpoint.BatchID(1)))
	j.check(t)
}
