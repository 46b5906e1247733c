package kafkaconn

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/wasmill/wasmill/host/fault"
)

// client makes a client of a connection, as a driver does.
func client(t *testing.T, c *Config) *kgo.Client {
	t.Helper()
	opts, err := c.Options()
	if err != nil {
		t.Fatal(err)
	}
	cl, err := kgo.NewClient(append(opts, kgo.DisableClientMetrics())...)
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

// TestUnreachable: a broker that is away is asked for now and then, one word is said of it, and the fault passes.
func TestUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dials, words := 0, 0
		refused := errors.New("connection refused")
		c := Config{
			Name: "main", Brokers: []string{"a:1"}, Warn: func(error) { words++ },
			Dial: func(context.Context, string, string) (net.Conn, error) { dials++; return nil, refused },
		}
		cl := client(t, &c)
		defer cl.Close()
		begin := time.Now()
		var err error
		for time.Since(begin) < time.Minute && (err == nil || IsPassing(err, false)) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			err = cl.Ping(ctx)
			cancel()
			<-time.After(100 * time.Millisecond)
		}
		f := c.Fault("topic t", err)
		if codeOf(f) != CodeUnreachable || !fault.IsPassing(f) || !errors.Is(f, refused) {
			t.Errorf("%v (%s), want %s that passes", f, codeOf(f), CodeUnreachable)
		}
		if words != 1 {
			t.Errorf("%d words of one broker", words)
		}
		if dials < 10 || dials > 1200 {
			t.Errorf("%d dials in a minute", dials)
		}
	})
}

// TestHungUp: a broker that hangs up at once wants TLS or SASL, unless the cluster has answered before.
func TestHungUp(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	var cut atomic.Bool
	c := Config{Name: "main", Brokers: cluster.ListenAddrs(), RequestTimeout: Duration(time.Second)}
	cut.Store(true)
	cluster.ControlKey(int16(kmsg.Metadata), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		return nil, errors.New("cut"), cut.Load()
	})
	ask := func() error {
		cl := client(t, &c)
		defer cl.Close()
		_, err := kmsg.NewPtrMetadataRequest().RequestWith(t.Context(), cl)
		return c.Fault("", err)
	}
	if err := ask(); codeOf(err) != CodeAuth || fault.IsPassing(err) {
		t.Errorf("before any answer: %v (%s), want %s for good", err, codeOf(err), CodeAuth)
	}
	cut.Store(false)
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	cut.Store(true)
	if err := ask(); codeOf(err) != CodeUnreachable || !fault.IsPassing(err) {
		t.Errorf("after an answer: %v (%s), want %s that passes", err, codeOf(err), CodeUnreachable)
	}
}

// TestWarnedOnceUntilBack: the next word comes when a broker was there in between.
func TestWarnedOnceUntilBack(t *testing.T) {
	words := 0
	c := Config{Name: "main", Warn: func(error) { words++ }}
	var r reach
	for _, step := range []struct {
		up   bool
		want int
	}{{false, 1}, {false, 1}, {true, 1}, {false, 2}, {false, 2}} {
		if step.up {
			r.made("a:1")
		} else {
			r.failed(t.Context(), &c, "a:1", errors.New("refused"))
		}
		if words != step.want {
			t.Fatalf("%d words, want %d", words, step.want)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if r.failed(gone, &c, "b:1", context.Canceled); words != 2 {
		t.Error("a word of a dial that was given up")
	}
}

// TestFirstBytes: what answers a plain client is told by its first bytes.
func TestFirstBytes(t *testing.T) {
	for name, x := range map[string]struct {
		sends string
		says  error
	}{
		"a TLS alert": {string([]byte{tlsAlert, tlsMajor, 3, 0, 2, 2, 70}), errWantsTLS},
		"HTTP":        {"HTTP/1.1 400 Bad Request\r\n\r\n", errNoKafka},
		"Kafka":       {"\x00\x00\x00\x0c....", nil},
		"one byte":    {"\x15", nil},
	} {
		here, there := net.Pipe()
		go func() { _, _ = there.Write([]byte(x.sends)); _ = there.Close() }()
		p := &plainConn{Conn: here}
		var b [32]byte
		n, err := p.Read(b[:])
		if x.says == nil && (err != nil || string(b[:n]) != x.sends) || x.says != nil && !errors.Is(err, x.says) {
			t.Errorf("%s: %q, %v", name, b[:n], err)
		}
		c := Config{Name: "main"}
		if f := c.Fault("", err); x.says != nil && (codeOf(f) != CodeTLS || fault.IsPassing(f)) {
			t.Errorf("%s: %v (%s)", name, f, codeOf(f))
		}
		_ = here.Close()
	}
}

// TestTLSFaults: each way that TLS can fail has a way out of its own.
func TestTLSFaults(t *testing.T) {
	seen := map[string]string{}
	for name, x := range map[string]struct {
		c   Config
		err error
	}{
		"wants TLS": {Config{}, errWantsTLS},
		"no Kafka":  {Config{}, errNoKafka},
		"refused":   {Config{TLS: &TLS{}}, &handshakeError{tls.AlertError(42)}},
		"other":     {Config{TLS: &TLS{}}, &handshakeError{errors.New("odd")}},
		"dialled":   {Config{TLS: &TLS{}}, &kgo.ErrFirstReadEOF{}}, // its zero value is about a dial
		"no SASL":   {Config{}, &kgo.ErrFirstReadEOF{}},
		"neither":   {Config{SASL: &SASL{}}, &kgo.ErrFirstReadEOF{}},
	} {
		code, way := x.c.tlsFault(x.err)
		if other, twice := seen[way]; twice || (code != CodeTLS && code != CodeAuth) {
			t.Errorf("%s: %s: the way out is %s's too: %s", name, code, other, way)
		}
		seen[way] = name
	}
}
