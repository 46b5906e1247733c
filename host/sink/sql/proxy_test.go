package sql_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/wasmill/wasmill/host/sink/sql"
)

// proxy stands between a target and a server, and cuts the connection that carries one of the client's messages.
type proxy struct {
	listener net.Listener
	server   string
	at       int // of the messages of all connections; -1: none
	what     verdict

	mu   sync.Mutex
	seen int
	met  bool
	wg   sync.WaitGroup
}

func newProxy(t testing.TB, server string, at int, what verdict) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &proxy{listener: l, server: server, at: at, what: what}
	p.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.serve(c) })
		}
	})
	return p
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.wg.Wait()
}

// verdict counts a message of a client.
func (p *proxy) verdict() verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.seen
	p.seen++
	if n != p.at {
		return pass
	}
	p.met = true
	return p.what
}

func (p *proxy) cut() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.met
}

// unanswered is how long an answer is waited for: a part of a COPY has none.
const unanswered = time.Second

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	defer server.Close()
	answers := make(chan []byte)
	silent := make(chan struct{})
	var once sync.Once
	p.wg.Go(func() {
		defer close(answers)
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			select {
			case <-silent:
				answers <- nil
				return
			default:
			}
			if err != nil {
				_ = client.Close()
				return
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	})
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		switch p.verdict() {
		case before:
			return
		case after:
			once.Do(func() { close(silent) })
			if _, err := server.Write(buf[:n]); err == nil {
				_ = server.SetReadDeadline(time.Now().Add(unanswered))
				<-answers // it is carried out
			}
			return
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}

// TestEveryMessageCut cuts the connection at every message of the client once, before or after the server has it, and lets
// the process go on or die with it.
func TestEveryMessageCut(t *testing.T) {
	w := newWorld(t, "postgres")
	address, err := url.Parse(w.url)
	must(t, err)
	server := address.Host
	runs, all, reopens := 0, 0, 0
	for _, what := range []verdict{before, after} {
		for _, dies := range []bool{false, true} {
			for at := 0; ; at++ {
				w.run(t, "SET client_min_messages = error", "DROP TABLE IF EXISTS out, wasmill_epoch")
				j := newJob(t, w, 2)
				p := newProxy(t, server, at, what)
				address.Host = p.listener.Addr().String()
				through := newPostgresDatabase(t, address.String())
				target := w.target(t, j.sink, func(cfg *sql.Config) { cfg.Database = through })
				err := j.live(t.Context(), t, target, func() bool { return dies && p.cut() })
				must(t, target.Close())
				p.close()
				if errors.Is(err, errDead) {
					target = w.target(t, j.sink)
					err = j.live(t.Context(), t, target, func() bool { return false })
					must(t, target.Close())
				}
				if err != nil {
					t.Fatalf("message %d: %v", at, err)
				}
				all += j.check(t)
				reopens += j.reopens
				runs++
				if !p.met {
					break
				}
			}
		}
	}
	t.Logf("%d runs with %d reopenings, %d rows, none lost, none doubled", runs, reopens, all)
	if runs < 60 {
		t.Errorf("only %d messages were cut", runs)
	}
}

// TestCancelled: whoever waits for a database that says nothing is set free by the context, and by the limits.
func TestCancelled(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never answers
	must(t, err)
	defer l.Close()
	w := &world{kind: "postgres", db: newPostgresDatabase(t, "postgres://x@"+l.Addr().String()+"/x?sslmode=disable")}
	s := sql.Sink{Table: "t", Schema: schema(t, "a: int32")}
	target := w.target(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := target.Open(ctx, owner()); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v, want the context's error", err)
	}
	patience := sql.DefaultPatience / 600
	target = w.target(t, s, func(cfg *sql.Config) { cfg.Patience = patience })
	_, err = target.Open(t.Context(), owner())
	wantFault(t, err, sql.CodeTimeout)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%v", err)
	}
}
