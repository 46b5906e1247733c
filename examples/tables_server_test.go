package examples

import (
	"bufio"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// pgServer is the real server that tests about tables run against, with a proxy before it that knows the statements.
type pgServer struct {
	url    string // the server itself
	behind string // the same through the proxy
	script string // knows kill9 and start

	mu     sync.Mutex
	seen   map[string]int // statements that went through, by point
	wanted string         // the point at which something is done
	nth    int
	strike func() // is done there, before the connection is cut
	struck chan struct{}
}

// realServer finds the server by the variables that `.ci/postgres/postgres.sh env` prints, or skips the test.
func realServer(t *testing.T) *pgServer {
	t.Helper()
	s := &pgServer{url: os.Getenv("WASMILL_POSTGRES"), script: os.Getenv("WASMILL_POSTGRES_SCRIPT"), seen: map[string]int{}}
	if s.url == "" || s.script == "" {
		t.Skip("WASMILL_POSTGRES and WASMILL_POSTGRES_SCRIPT name no server: see .ci/postgres")
	}
	u, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := u.Host
	u.Host = l.Addr().String()
	s.behind = u.String()
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { s.serve(c, server) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
	return s
}

// sh runs a verb of the server's script.
func (s *pgServer) sh(t *testing.T, verb string) {
	t.Helper()
	if out, err := exec.Command("bash", s.script, verb).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", s.script, verb, err, out)
	}
}

// watch counts points anew. At the n-th time of one the connection is cut, after strike; struck is closed then.
func (s *pgServer) watch(point string, n int, strike func()) (struck chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen, s.wanted, s.nth, s.strike, s.struck = map[string]int{}, point, n, strike, make(chan struct{})
	return s.struck
}

// points are the statements that went through since watch.
func (s *pgServer) points() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

// passes counts a point, and does what is to be done there; false: the connection is to be cut.
func (s *pgServer) passes(point string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[point]++
	if point != s.wanted || s.seen[point] != s.nth {
		return true
	}
	if s.strike != nil {
		s.strike()
	}
	close(s.struck)
	return false
}

// answer tells which statement was sent, so that the server's next answer can be held back.
type answer struct {
	mu   sync.Mutex
	name string
}

func (a *answer) swap(name string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	was := a.name
	a.name = name
	return was
}

// serve carries one connection.
func (s *pgServer) serve(client net.Conn, server string) {
	defer client.Close()
	up, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer up.Close()
	var sent answer
	var wg sync.WaitGroup
	wg.Go(func() {
		defer client.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := up.Read(buf)
			if err != nil {
				return
			}
			if name := sent.swap(""); name != "" && !s.passes("answered: "+name) {
				return
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	})
	s.forward(client, up, &sent)
	_ = up.Close()
	wg.Wait()
}

// forward passes on what a client says, message by message.
func (s *pgServer) forward(client, up net.Conn, sent *answer) {
	backend := pgproto3.NewBackend(bufio.NewReader(client), nil)
	first, err := backend.ReceiveStartupMessage()
	if err != nil || !pass(up, first) {
		return
	}
	prepared := map[string]string{}
	bound := ""
	for {
		m, err := backend.Receive()
		if err != nil {
			return
		}
		name := ""
		switch m := m.(type) {
		case *pgproto3.Query:
			name = statement(m.String)
		case *pgproto3.Parse:
			prepared[m.Name] = statement(m.Query)
		case *pgproto3.Bind:
			bound = prepared[m.PreparedStatement]
		case *pgproto3.Execute:
			name = bound
		case *pgproto3.CopyData:
			if !s.passes("sent: data of a COPY") {
				return
			}
		case *pgproto3.CopyDone:
			name = "end of a COPY"
		}
		if name != "" && !s.passes("sent: "+name) {
			return
		}
		if name != "" {
			sent.swap(name)
		}
		if !pass(up, m) {
			return
		}
	}
}

func pass(up net.Conn, m pgproto3.FrontendMessage) bool {
	b, err := m.Encode(nil)
	if err == nil {
		_, err = up.Write(b)
	}
	return err == nil
}

var (
	ownNames = regexp.MustCompile(`"?tables_[0-9a-f]+_[0-9]+_[0-9]+_s[0-9]+[a-z_]*"?`)
	blanks   = regexp.MustCompile(`\s+`)
)

// statement names the kind of a statement: its beginning without what is unique.
func statement(text string) string {
	text = blanks.ReplaceAllString(numberless(ownNames.ReplaceAllString(text, "T")), " ")
	return strings.TrimSpace(text[:min(len(text), 44)])
}

func numberless(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return 'N'
		}
		return r
	}, text)
}

// servers are the combinations that need a server, a broker or both.
var servers = [][]string{
	{toPostgres},
	{toServerKeys},
	{toPostgres, toServerKeys},
	{toFiles, toPostgres},
	{toDelta, toPostgres},
	{toPostgres, toSQLite},
	{toDeltaKeys, toServerKeys},
	{toServerKeys, toSQLiteKeys},
	{toKafka, toFiles},
	{toKafka, toDelta},
	{toKafka, toSQLite},
	{toKafka, toPostgres},
	{toKafka, toDeltaKeys},
	{toKafka, toSQLiteKeys},
	{toKafka, toServerKeys},
}

// TestTablesServers is TestTablesKill with a real PostgreSQL server and a real Kafka broker. Connections to both are cut as well,
// and both are killed and started again.
func TestTablesServers(t *testing.T) {
	pg := realServer(t)
	var bus *broker
	combinations := servers
	if os.Getenv("WASMILL_KAFKA") != "" {
		bus = realBroker(t)
	} else {
		combinations = slices.DeleteFunc(slices.Clone(servers), func(kinds []string) bool { return slices.Contains(kinds, toKafka) })
	}
	tablesRun(t, combinations, pg, bus, (*tablesKill).disturb)
}

// disturb cuts connections where the transaction ends, and kills the server and the broker. A kind and a pair are disturbed once; alone,
// connections are cut at some other points as well.
func (k *tablesKill) disturb(t *testing.T) {
	t.Helper()
	if k.pair.disturbed {
		return
	}
	k.pair.disturbed = true
	var at []string
	servers := 1
	if k.pg != nil {
		at = append(at, "sent: COMMIT", "answered: COMMIT")
	}
	if k.bus != nil {
		at = append(at, "request: EndTxn (commit)", "response: EndTxn (commit)", []string{"request: Produce", "response: Produce"}[k.rng.IntN(2)])
	}
	if len(k.kinds) == 1 {
		servers = 3
		wire := slices.DeleteFunc(slices.Sorted(maps.Keys(k.points)), func(p string) bool { return !onWire(p) })
		k.rng.Shuffle(len(wire), func(i, j int) { wire[i], wire[j] = wire[j], wire[i] })
		at = append(at, wire[:max(2, min(len(wire), tablesKills(t)/10))]...)
	}
	for _, p := range at {
		k.table(t, []tableShot{{wire: p, cut: true, nth: 1 + k.rng.IntN(2)}})
	}
	soon := func() time.Duration { return time.Duration(k.rng.IntN(30)) * time.Millisecond }
	for n := range servers {
		if k.pg != nil {
			k.table(t, []tableShot{{server: true, nth: 2 * n, after: soon()}})
		}
	}
	if k.bus != nil {
		k.table(t, []tableShot{{broker: true, nth: k.rng.IntN(changeFiles), after: soon()}})
	}
}

// restart kills the server or the broker while the job is at work, and starts it again.
func (k *tablesKill) restart(t *testing.T, p *process, s *tableShot) {
	t.Helper()
	if !until(p, bound, func() bool { return decided(k.job.checkpoint()) >= s.nth }) {
		return
	}
	pause(t.Context(), s.after)
	k.all.cuts[s.kind()]++
	if s.server {
		k.pg.sh(t, "kill9")
		k.pg.sh(t, "start")
		k.pair.servers++
		return
	}
	k.bus.sh(t, "kill9")
	k.bus.sh(t, "start")
	k.pair.brokers++
}

// toBroker tells that a point is of a connection to the broker.
func toBroker(p string) bool {
	return strings.HasPrefix(p, "request: ") || strings.HasPrefix(p, "response: ")
}

// ofProtocol are the requests by which a target publishes and finds out what is published.
var ofProtocol = []string{"Produce", "Fetch", "ListOffsets", "FindCoordinator", "InitProducerId", "AddPartitionsToTxn", "EndTxn (commit)"}

// requests are how often each kind of request was seen so far.
func (k *tablesKill) requests() map[string]int {
	if k.proxy == nil {
		return nil
	}
	out := map[string]int{}
	for key, n := range k.proxy.requests() {
		if name := requestName(key); slices.Contains(ofProtocol, name) {
			out[name] = n
		}
	}
	return out
}

// peace lets everything through.
func (k *tablesKill) peace() { k.watch(&tableShot{}, nil) }

// watch does what a shot says to a connection: the process is killed by strike, or the connection is cut. struck is closed then.
func (k *tablesKill) watch(s *tableShot, strike func()) (struck chan struct{}) {
	if s.cut {
		strike = nil
	}
	struck = make(chan struct{})
	if k.proxy != nil {
		k.proxy.set(k.judge(s, strike, struck))
	}
	if k.pg == nil || toBroker(s.wire) {
		if k.pg != nil {
			k.pg.watch("", 0, nil)
		}
		return struck
	}
	return k.pg.watch(s.wire, s.nth, strike)
}

// judge is what the proxy before the broker does; nil passes all on.
func (k *tablesKill) judge(s *tableShot, strike func(), struck chan struct{}) func(request) verdict {
	if !toBroker(s.wire) {
		return nil
	}
	way, name, _ := strings.Cut(s.wire, ": ")
	treat := cutBefore
	if way == "response" {
		treat = cutAfter
	}
	var n atomic.Int64
	return func(r request) verdict {
		if requestName(r.key) != name || n.Add(1) != int64(s.nth) {
			return verdict{}
		}
		return verdict{treatment: treat, then: func() {
			if strike != nil {
				strike()
			}
			close(struck)
		}}
	}
}
