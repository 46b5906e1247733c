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
	s := &pgServer{url: os.Getenv("WASMILL_POSTGRES"), script: os.Getenv("WASMILL_POSTGRES_SCRIPT")}
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
	{toFiles, toPostgres},
	{toDelta, toPostgres},
	{toPostgres, toSQLite},
	{toKafka, toDelta},
	{toKafka, toSQLite},
	{toKafka, toPostgres},
}

// TestTablesServers is TestTablesKill with a real PostgreSQL server and a real Kafka broker. Its connections are cut as well,
// and the server is killed and started again.
func TestTablesServers(t *testing.T) {
	pg := realServer(t)
	var bus *broker
	combinations := servers[:5]
	if os.Getenv("WASMILL_KAFKA") != "" {
		bus, combinations = realBroker(t), servers
	}
	tablesRun(t, combinations, pg, bus, func(k *tablesKill) {
		if k.pg != nil && len(k.kinds) == 1 {
			k.disturb(t)
		}
	})
}

// disturb cuts the connection at some statements, those that commit among them, and kills the server a few times.
func (k *tablesKill) disturb(t *testing.T) {
	t.Helper()
	wire := slices.DeleteFunc(slices.Sorted(maps.Keys(k.points)), func(p string) bool { return !onWire(p) })
	k.rng.Shuffle(len(wire), func(i, j int) { wire[i], wire[j] = wire[j], wire[i] })
	for _, p := range append(wire[:max(2, min(len(wire), tablesKills(t)/10))], "sent: COMMIT", "answered: COMMIT") {
		k.table(t, []tableShot{{wire: p, cut: true, nth: 1}})
	}
	for n := range 3 {
		k.table(t, []tableShot{{server: true, nth: 2 * n, after: time.Duration(k.rng.IntN(30)) * time.Millisecond}})
	}
}
