//go:build linux

package hostile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/sandbox"
	"github.com/wasmill/wasmill/host/sandbox/apart"
)

// Variables by which the test's program learns that it is a child, and for what.
const (
	envCase   = "WASMILL_HOSTILE_CASE"
	envEngine = "WASMILL_HOSTILE_ENGINE"
	envCPU    = "WASMILL_HOSTILE_CPU"
)

// compileArg tells the test's program that it is a process that compiles.
const compileArg = "compile"

// compiling are the limits of such a process, a fifth of the usual ones.
var compiling = apart.Limits{CPU: 2 * time.Second, Memory: 1 << 30, Time: time.Minute}

// killAfter ends a child that neither ends nor uses CPU time. It is no bound of any case.
const killAfter = 3 * time.Minute

// addressSpace is what a child may reserve, far more than any case may use.
const addressSpace = 6 << 30

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == compileArg {
		os.Exit(apart.Child(context.Background(), os.Stdin, os.Stdout, os.Exit))
	}
	if id := os.Getenv(envCase); id != "" {
		os.Exit(child(id))
	}
	goleak.VerifyTestMain(m)
}

// report is what a child tells its parent.
type report struct {
	Wrong    []string  // where outcomes are not as they must be
	Outcomes []outcome // of modules that started, and the first one anyhow
	Variants int
}

// child runs one case under limits of the system.
func child(id string) int {
	if err := confine(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	i := slices.IndexFunc(attacks, func(a attack) bool { return a.id == id })
	if i < 0 {
		fmt.Fprintln(os.Stderr, "no such case")
		return 3
	}
	r, err := attacks[i].run(os.Getenv(envEngine))
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(r)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	return 0
}

// confine bounds this process.
func confine() error {
	seconds, err := strconv.ParseUint(os.Getenv(envCPU), 10, 32)
	if err != nil {
		return err
	}
	limit := func(which int, n uint64) error { return unix.Setrlimit(which, &unix.Rlimit{Cur: n, Max: n}) }
	err = errors.Join(limit(unix.RLIMIT_CPU, seconds), limit(unix.RLIMIT_CORE, 0))
	if !raceDetector {
		err = errors.Join(err, limit(unix.RLIMIT_AS, addressSpace))
	}
	return err
}

// run takes every variant through one engine.
func (a *attack) run(engine string) (*report, error) {
	ctx := context.Background()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	judge := apart.New(apart.Config{Program: self, Args: []string{self, compileArg}, Limits: compiling, Files: durable.OS()})
	e, err1 := sandbox.New(sandbox.Config{Interpreter: engine == "interpreter"})
	other, err2 := sandbox.New(sandbox.Config{Interpreter: engine == "interpreter", Apart: judge})
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if e.Kind() != engine {
		return nil, fmt.Errorf("this is the %s", e.Kind())
	}
	r := &report{}
	for v := range a.each {
		on := e
		if v.apart {
			on = other
		}
		o := v.run(ctx, on)
		o.Name = v.name
		if wrong := v.check(&o); wrong != "" && len(r.Wrong) < 20 {
			r.Wrong = append(r.Wrong, wrong)
		}
		if r.Variants++; r.Variants == 1 || o.At != atCompile {
			r.Outcomes = append(r.Outcomes, o)
		}
	}
	return r, errors.Join(e.Close(ctx), other.Close(ctx))
}

// spent is what a child used.
type spent struct {
	cpu float64 // seconds
	rss int     // MiB
}

// spawn runs a case in a child. The error says how the child ended when it did not report.
func (a *attack) spawn(ctx context.Context, engine string) (*report, spent, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, spent{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, killAfter)
	defer cancel()
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), envCase+"="+a.id, envEngine+"="+engine, fmt.Sprintf("%s=%d", envCPU, int(math.Ceil(a.seconds(engine)))+2))
	var out bytes.Buffer
	said := &head{most: 400}
	cmd.Stdout, cmd.Stderr = &out, said
	err = cmd.Run()
	used := spent{}
	if cmd.ProcessState != nil {
		usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		used.cpu = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
		used.rss = int(usage.Maxrss >> 10)
	}
	if err != nil {
		return nil, used, fmt.Errorf("the child ended: %w: %s", err, said.text)
	}
	r := &report{}
	if err := json.Unmarshal(out.Bytes(), r); err != nil {
		return nil, used, fmt.Errorf("read the child's report: %w: %s", err, said.text)
	}
	return r, used, nil
}

// head keeps the first bytes of what is written to it.
type head struct {
	text []byte
	most int
}

func (h *head) Write(p []byte) (int, error) {
	h.text = append(h.text, p[:min(len(p), h.most-len(h.text))]...)
	return len(p), nil
}

var _ io.Writer = (*head)(nil)

// TestAttacks runs every case. A case that is pending must fail still.
func TestAttacks(t *testing.T) {
	ids := map[string]bool{}
	for i := range attacks {
		a := &attacks[i]
		if ids[a.id] {
			t.Errorf("two cases %s", a.id)
		}
		ids[a.id] = true
		t.Run(a.id+" "+a.name, func(t *testing.T) {
			if testing.Short() && a.long {
				t.Skip("long")
			}
			t.Parallel()
			wrong := a.wrong(t)
			why, waits := pending[a.id]
			switch {
			case waits && len(wrong) == 0:
				t.Errorf("it passes: take it off the list of what is pending (%s)", why)
			case waits:
				t.Logf("pending (%s): %s", why, strings.Join(wrong, "\n"))
			default:
				for _, w := range wrong {
					t.Error(w)
				}
			}
		})
	}
	for id := range pending {
		if !ids[id] {
			t.Errorf("%s is pending and no case", id)
		}
	}
}

// wrong runs a case on its engines and says what is not as it must be.
func (a *attack) wrong(t *testing.T) (wrong []string) {
	engines := []string{"compiler"}
	if a.onEach && !testing.Short() {
		engines = append(engines, "interpreter")
	}
	var reports []*report
	for _, engine := range engines {
		r, used, err := a.spawn(t.Context(), engine)
		t.Logf("| %s | %s | %s | %.2f of %.1f | %d of %d | %s |", a.id, a.name, engine, used.cpu, a.seconds(engine), used.rss, a.rss, r.summary())
		if err != nil {
			wrong = append(wrong, engine+": "+err.Error())
			continue
		}
		for _, w := range r.Wrong {
			wrong = append(wrong, engine+": "+w)
		}
		if used.cpu > a.seconds(engine) || used.rss > a.rss*slack {
			wrong = append(wrong, fmt.Sprintf("%s: it took %.2f CPU-seconds of %.2f and %d MiB of %d", engine, used.cpu, a.seconds(engine), used.rss, a.rss*slack))
		}
		reports = append(reports, r)
	}
	if len(reports) == 2 {
		wrong = append(wrong, differences(reports[0].Outcomes, reports[1].Outcomes)...)
	}
	return wrong
}

// short is an outcome without what is long and says little.
func (o outcome) short() string {
	return fmt.Sprintf("%s %s trap %q status %d, %d functions, emitted %.8s, logged %.8s, image %.8s, %+v: %s",
		o.At, o.Code, o.Trap, o.Status, len(o.Stack), o.Emitted, o.Logged, o.Image, o.Usage, o.Error)
}

// seconds bounds the CPU time on an engine.
func (a *attack) seconds(engine string) float64 {
	if engine == "interpreter" {
		return slack * max(a.cpu, a.slow)
	}
	return slack * a.cpu
}

// summary is the first verdict, for the table that a run with -v prints.
func (r *report) summary() string {
	if r == nil || len(r.Outcomes) == 0 {
		return "no report"
	}
	o := r.Outcomes[0]
	s := o.At
	if o.Code != "" {
		s += " " + o.Code
	}
	if o.Trap != "" {
		s += " trap " + string(o.Trap)
	}
	if o.Status != 0 {
		s += fmt.Sprintf(" status %d", o.Status)
	}
	if o.Error != "" {
		s += fmt.Sprintf(": %.160s", o.Error)
	}
	return fmt.Sprintf("%d variants: %s; fuel %d", r.Variants, s, o.Usage.Fuel)
}

// differences says where two engines did not agree.
func differences(a, b []outcome) (wrong []string) {
	if len(a) != len(b) {
		return []string{fmt.Sprintf("the compiler has %d outcomes, the interpreter %d", len(a), len(b))}
	}
	for i := range a {
		if !reflect.DeepEqual(a[i], b[i]) {
			wrong = append(wrong, fmt.Sprintf("%s: the engines differ:\n%.600v\n%.600v", a[i].Name, a[i].short(), b[i].short()))
		}
	}
	return wrong
}
