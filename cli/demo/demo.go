package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/fault"
)

// Config is what a demo does.
type Config struct {
	Records int64         // orders in all
	Rate    int64         // orders a second
	Limit   time.Duration // when no more orders are made, if they are not used up before; 0: never
	Kills   int           // without a key being pressed
	Seed    uint64        // of orders and kills
	Dir     string        // an empty or new folder, which is kept; "" for one among the temporary files
	Keep    bool          // the folder, also when it is a temporary one
}

// Env is what a demo uses of the machine.
type Env struct {
	Program Program
	Environ []string // of the engines
	Files   durable.Files
	Now     func() time.Time
	// In and Out are the terminal. Without Out there is none, and Log gets a line a second.
	In, Out *os.File
	Log     io.Writer
	// Colour and Unicode are what the terminal can show.
	Colour, Unicode bool
}

// Result is how a demo came out.
type Result struct {
	Proof *Proof `json:"proof"`
	Kills int    `json:"kills"`
	// Processes is how many engines were ended by the kills.
	Processes int `json:"processes"`
	// First is how long it took from each kill -9 of an engine to the next batch that it published, in seconds.
	First []float64 `json:"firstOutputSeconds"`
	first []time.Duration
	// Folder is where everything lies, if it was kept.
	Folder string `json:"folder,omitempty"`
}

// Run runs a demo. Its error is a fault, among them one with CodeProof, with a result, when something was lost or doubled.
func Run(ctx context.Context, c Config, e Env) (r *Result, err error) {
	dir, temporary, err := makeFolder(c.Dir)
	if err != nil {
		return nil, err
	}
	keep := c.Keep || !temporary
	defer func() {
		f, _ := errors.AsType[*fault.Error](err)
		keep = keep || f != nil && (f.ErrCode == CodeEngine || f.ErrCode == CodeProof || f.ErrCode == CodeStalled)
		if keep {
			if r != nil {
				r.Folder = dir
			}
			return
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	b, err := newBroker()
	if err != nil {
		return nil, err
	}
	defer b.close()
	if err := writeJobs(dir, b.addresses()[0], c); err != nil {
		return nil, err
	}
	s, err := newShow(c, e, dir, b)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.run(ctx); err != nil {
		return nil, err
	}
	s.proving()
	p, err := prove(ctx, e.Files, b.addresses(), dir, c.Seed)
	if err != nil {
		return nil, proofFault(ctx, dir, err)
	}
	r = s.result(p)
	return r, p.err(dir)
}

// proofFault says why there is no proof.
func proofFault(ctx context.Context, dir string, err error) error {
	if ctx.Err() != nil {
		return stopped()
	}
	return fault.New(CodeProof, dir, fmt.Errorf("count what there is: %w", err), "keep the folder, and report it with the files in it")
}

func stopped() error {
	return fault.New(CodeStopped, "the demo", errors.New("stopped before the proof"), "let it run to its end, which --seconds and --records can bring nearer, or press q")
}

// makeFolder finds the demo's folder: an empty one, or a new one among the temporary files.
func makeFolder(name string) (dir string, temporary bool, err error) {
	if name == "" {
		if dir, err = os.MkdirTemp("", "wasmill-demo-"); err != nil {
			return "", true, folderFault(os.TempDir(), err)
		}
		return dir, true, nil
	}
	if err := os.MkdirAll(name, 0o755); err != nil {
		return "", false, folderFault(name, err)
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return "", false, folderFault(name, err)
	}
	if len(entries) > 0 {
		return "", false, fault.New(CodeFolder, name, errors.New("the folder is not empty"), "name an empty folder or one that is not there yet")
	}
	return name, false, nil
}

// Lines prints the result for people.
func (r *Result) Lines() []string {
	out := r.Proof.lines()
	kills := fmt.Sprintf("  kill -9          %d times, %d engines", r.Kills, r.Processes)
	if len(r.first) > 0 {
		kills += "; first output after it: " + spread(r.first)
	}
	verdict := out[len(out)-1]
	if len(r.Proof.Findings) > 0 {
		out = append(out, kills)
	} else {
		out = append(out[:len(out)-1], kills, verdict)
	}
	if r.Folder != "" {
		return append(out, "jobs, table, progress and logs are in "+r.Folder+"; README.md there says how to run them by hand")
	}
	return append(out, "jobs, table, progress and logs were in a temporary folder; --keep leaves them, with how to run them by hand")
}
