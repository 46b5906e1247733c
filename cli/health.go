package cli

import (
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
	doing  string
}

func newStatus(kind string) *status { return &status{kind: kind, reason: "starting"} }

func (s *status) set(ready bool, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready, s.reason = ready, reason
}

func (s *status) step(st engine.Step, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doing = string(st)
	if done {
		s.doing = "between steps"
	}
}

// readyz answers 200 when the job runs and 503 with the reason when it does not; ?verbose lists what is known.
func (s *status) readyz(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if !s.ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	fmt.Fprintln(w, s.reason)
	if r.URL.Query().Has("verbose") {
		fmt.Fprintf(w, "engine=%s\nstep=%s\nversion=%s\n", s.kind, s.doing, buildVersions().Version)
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
