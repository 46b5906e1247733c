package examples

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// How a proxy treats a request.
type treatment int

const (
	passOn    treatment = iota
	cutBefore           // both connections end, the broker never sees the request
	cutMid              // half of it is sent
	cutAfter            // the broker has carried it out, the answer is lost
	stallFor            // it is held up for a while
)

func (w treatment) String() string {
	return [...]string{"pass", "cut before", "cut in the middle", "answer lost", "stall"}[w]
}

// The request that ends a transaction. It ends in whether to commit, and an empty list of tagged fields: a commit counts as a
// kind of request of its own here.
const (
	endTxn    = 26
	commitTxn = 1000 + endTxn
)

// request is what a judge sees of a request.
type request struct {
	key, version int16
}

// proxy stands in every connection between the program and the broker. judge decides about each request; before and after
// are told when a request that was not just passed on is held and when its answer has come.
type proxy struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	judge func(request) verdict
	seen  map[int16]int // requests by their key
	conns map[net.Conn]bool
	wg    sync.WaitGroup
}

// verdict is a treatment with what else happens at that place.
type verdict struct {
	treatment
	stall time.Duration
	// then is called when the request is held (before it is sent, or for cutAfter when its answer has come).
	then func()
}

func startProxy(t *testing.T, b *broker) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", b.proxy)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, to: b.behind, seen: map[int16]int{}, conns: map[net.Conn]bool{}}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.cutAll()
		p.wg.Wait()
	})
	return p
}

// set changes how requests are judged; nil passes all on.
func (p *proxy) set(judge func(request) verdict) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.judge = judge
}

// requests are how often each kind of request was seen so far.
func (p *proxy) requests() map[int16]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[int16]int{}
	for k, n := range p.seen {
		out[k] = n
	}
	return out
}

func (p *proxy) cutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.serve(c) })
	}
}

// link is one connection of the program with the one to the broker that belongs to it.
type link struct {
	p        *proxy
	from, to net.Conn

	mu     sync.Mutex
	victim int32 // correlation id whose answer is not delivered
	armed  bool
	then   func()
}

func (p *proxy) serve(from net.Conn) {
	defer from.Close()
	to, err := net.DialTimeout("tcp", p.to, 5*time.Second)
	if err != nil {
		return // the broker is away
	}
	defer to.Close()
	p.mu.Lock()
	p.conns[from], p.conns[to] = true, true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, from)
		delete(p.conns, to)
	}()
	l := &link{p: p, from: from, to: to}
	p.wg.Go(func() {
		l.answers()
		_ = from.Close()
		_ = to.Close()
	})
	l.requests()
}

// frame reads one request or answer with its size.
func frame(c net.Conn) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > 128<<20 {
		return nil, errors.New("no frame")
	}
	b := make([]byte, 4+n)
	copy(b, size[:])
	_, err := io.ReadFull(c, b[4:])
	return b, err
}

// requests hands requests to the broker until the connection ends, or is to end.
func (l *link) requests() {
	for {
		b, err := frame(l.from)
		if err != nil || len(b) < 12 {
			return
		}
		r := request{key: int16(binary.BigEndian.Uint16(b[4:])), version: int16(binary.BigEndian.Uint16(b[6:]))}
		if r.key == endTxn && b[len(b)-2] == 1 {
			r.key = commitTxn
		}
		v := l.p.look(r)
		if v.then != nil && v.treatment != cutAfter {
			v.then()
		}
		switch v.treatment {
		case cutBefore:
			return
		case cutMid:
			_, _ = l.to.Write(b[:len(b)/2])
			return
		case cutAfter:
			l.mu.Lock()
			l.victim, l.armed, l.then = int32(binary.BigEndian.Uint32(b[8:])), true, v.then
			l.mu.Unlock()
		case stallFor:
			timer := time.NewTimer(v.stall)
			<-timer.C
		case passOn:
		}
		if _, err := l.to.Write(b); err != nil {
			return
		}
	}
}

// look counts a request and judges it.
func (p *proxy) look(r request) verdict {
	p.mu.Lock()
	p.seen[r.key]++
	judge := p.judge
	p.mu.Unlock()
	if judge == nil {
		return verdict{}
	}
	return judge(r)
}

// answers brings answers back until the connection ends, or the one comes that is to be lost.
func (l *link) answers() {
	for {
		b, err := frame(l.to)
		if err != nil || len(b) < 8 {
			return
		}
		l.mu.Lock()
		lost := l.armed && int32(binary.BigEndian.Uint32(b[4:])) == l.victim
		l.mu.Unlock()
		if lost {
			if l.then != nil {
				l.then()
			}
			return
		}
		if _, err := l.from.Write(b); err != nil {
			return
		}
	}
}
