package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	ucli "github.com/urfave/cli/v2"

	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/fault"
)

// CodeListen is the code of an address that cannot be listened on.
const CodeListen = "run.listen"

// checkAddress refuses what is no host and port, before anything is started.
func checkAddress(c *ucli.Context) error {
	address := c.String("listen")
	if address == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.DefaultResolver.LookupPort(c.Context, "tcp", port)
	}
	if err != nil || port == "" {
		return usagef(c, "--listen %q: it is HOST:PORT, such as 127.0.0.1:9090, or :9090 for every address of the machine", address)
	}
	return nil
}

// status is what the health endpoints answer.
type status struct {
	mu     sync.Mutex
	ready  bool
	reason string
	kind   string
	now    func() time.Time
	doing  engine.Step // "" between steps
	since  time.Time
}

// longStep is how long a step that waits for others may take before the job counts as not ready.
const longStep = 10 * time.Second

func newStatus(kind string, now func() time.Time) *status {
	return &status{kind: kind, now: now, reason: "starting"}
}

func (s *status) set(ready bool, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready, s.reason = ready, reason
}

func (s *status) step(st engine.Step, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doing, s.since = st, s.now()
	if done {
		s.doing = ""
	}
}

// standing is whether the job is ready, and why or why not. A step that waits for a source or a target and does not come to
// an end is an outage; how long a batch runs is its own affair.
func (s *status) standing() (ready bool, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if took := s.now().Sub(s.since); s.ready && s.doing != "" && s.doing != engine.StepRun && took > longStep {
		return false, fmt.Sprintf("step %s has been under way for %s", s.doing, took.Truncate(time.Second))
	}
	return s.ready, s.reason
}

// readyz answers 200 when the job runs and 503 with the reason when it does not; ?verbose lists what is known.
func (s *status) readyz(w http.ResponseWriter, r *http.Request) {
	ready, reason := s.standing()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if !ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	fmt.Fprintln(w, reason)
	if r.URL.Query().Has("verbose") {
		s.mu.Lock()
		doing := cmp.Or(string(s.doing), "between steps")
		s.mu.Unlock()
		fmt.Fprintf(w, "engine=%s\nstep=%s\nversion=%s\n", s.kind, doing, buildVersions().Version)
	}
}

// server is the listener of `run --listen`.
type server struct {
	http   *http.Server
	socket net.Listener
	done   chan error
}

func listen(ctx context.Context, address string, m *metrics, s *status) (*server, error) {
	socket, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		if op, ok := errors.AsType[*net.OpError](err); ok {
			err = op.Err // it says the address once more
		}
		return nil, fault.New(CodeListen, address, fmt.Errorf("listen for /metrics, /livez and /readyz: %w", err),
			"give --listen an address of this machine and a port that is free; port 0 takes any")
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "alive") })
	mux.HandleFunc("GET /readyz", s.readyz)
	srv := &server{
		socket: socket, done: make(chan error, 1),
		http: &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10},
	}
	go func() { srv.done <- srv.http.Serve(socket) }()
	return srv, nil
}

func (s *server) address() string { return s.socket.Addr().String() }

func (s *server) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if served := <-s.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
