package kafka

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/kafkaconn"
	"github.com/wasmill/wasmill/host/source"
)

func sasl(mechanism, user, password string) *kafkaconn.SASL {
	return &kafkaconn.SASL{Mechanism: mechanism, Username: user, Password: password}
}

// TestUnreachable: dials are spaced out, and end in a fault.
func TestUnreachable(t *testing.T) {
	var dials atomic.Int32
	w := &world{t: t, now: epoch, brokers: []string{"127.0.0.1:9"}}
	s := w.open(func(c *Config) {
		c.Patience = 300 * time.Millisecond
		c.Cluster.RequestTimeout = kafkaconn.Duration(100 * time.Millisecond)
		c.Cluster.Dial = func(context.Context, string, string) (net.Conn, error) {
			dials.Add(1)
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
		}
	}, "t")
	w.failLatest(s, checkpoint.Position{}, kafkaconn.CodeUnreachable, "connection main", "refused")
	if n := dials.Load(); n < 2 || n > 40 {
		t.Errorf("%d dials in 300 ms", n)
	}
}

func TestAuthentication(t *testing.T) {
	for _, mechanism := range []string{kafkaconn.Plain, kafkaconn.Scram256, kafkaconn.Scram512} {
		names := map[string]string{kafkaconn.Plain: "PLAIN", kafkaconn.Scram256: "SCRAM-SHA-256", kafkaconn.Scram512: "SCRAM-SHA-512"}
		fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.Superuser(names[mechanism], "boss", "right"), kfake.SeedTopics(1, "t"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(fake.Close)
		w := &world{t: t, fake: fake, now: epoch, brokers: fake.ListenAddrs()}
		with := func(s *kafkaconn.SASL) *Source {
			return w.open(func(c *Config) { c.Cluster.SASL = s; c.Start.Latest = true }, "t")
		}
		w.latest(with(sasl(mechanism, "boss", "right")), checkpoint.Position{}, source.Limit{})
		refuse(fake) // the fake broker hangs up where a real one answers
		w.failLatest(with(sasl(mechanism, "boss", "wrong")), checkpoint.Position{}, kafkaconn.CodeAuth, "connection main")
		w.failLatest(with(sasl(mechanism, "nobody", "right")), checkpoint.Position{}, kafkaconn.CodeAuth)
		w.failLatest(with(nil), checkpoint.Position{}, kafkaconn.CodeAuth, "SASL")
	}
}

func refuse(fake *kfake.Cluster) {
	fake.ControlKey(int16(kmsg.SASLAuthenticate), func(r kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		resp := r.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		resp.ErrorCode = kerr.SaslAuthenticationFailed.Code
		return resp, nil, true
	})
}

func TestMissingACL(t *testing.T) {
	allow := func(kind kmsg.ACLResourceType, name string, op kmsg.ACLOperation) kfake.ACL {
		return kfake.ACL{Resource: kind, Name: name, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true}
	}
	fake, err := kfake.NewCluster(
		kfake.NumBrokers(1), kfake.EnableSASL(), kfake.EnableACLs(), kfake.SeedTopics(1, "seen", "read"),
		kfake.Superuser("PLAIN", "boss", "boss"),
		kfake.User("PLAIN", "job", "pw", allow(kmsg.ACLResourceTypeTopic, "seen", kmsg.ACLOperationDescribe),
			allow(kmsg.ACLResourceTypeTopic, "read", kmsg.ACLOperationRead)),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	w := &world{t: t, fake: fake, now: epoch, brokers: fake.ListenAddrs()}
	boss, err := kgo.NewClient(kgo.SeedBrokers(w.brokers...), kgo.SASL(plainOf("boss", "boss")), kgo.DefaultProduceTopic("seen"))
	if err != nil {
		t.Fatal(err)
	}
	defer boss.Close()
	for _, topic := range []string{"seen", "read"} {
		if err := boss.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte("v")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	open := func(topic, group string) *Source {
		return w.open(func(c *Config) {
			c.Cluster.SASL, c.Group, c.Commit = sasl("plain", "job", "pw"), group, time.Nanosecond
		}, topic)
	}
	s := open("seen", "")
	at := w.latest(s, checkpoint.Position{}, source.Limit{})
	_, err = tryRead(t.Context(), s, checkpoint.Position{}, at)
	wantFault(t, err, kafkaconn.CodeDenied, "seen-0")
	w.failLatest(open("hidden", ""), checkpoint.Position{}, kafkaconn.CodeDenied, "hidden")
	s = open("read", "lags")
	got, at := w.all(s, checkpoint.Position{})
	w.want(got, "read-0@0 v")
	wantFault(t, w.released(s, at), kafkaconn.CodeDenied, "lags")
}

// certificate is a self-signed certificate of 127.0.0.1 and its PEM text.
func certificate(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "broker"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, &form, &form, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestTLS(t *testing.T) {
	cert, text := certificate(t)
	_, other := certificate(t)
	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.TLS(&tls.Config{Certificates: []tls.Certificate{cert}}), kfake.SeedTopics(1, "t"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	w := &world{t: t, fake: fake, now: epoch, brokers: fake.ListenAddrs()}
	with := func(conf *kafkaconn.TLS) *Source {
		return w.open(func(c *Config) { c.Cluster.TLS = conf; c.Start.Latest = true }, "t")
	}
	w.latest(with(&kafkaconn.TLS{CA: text}), checkpoint.Position{}, source.Limit{})
	w.latest(with(&kafkaconn.TLS{Insecure: true}), checkpoint.Position{}, source.Limit{})
	w.failLatest(with(&kafkaconn.TLS{CA: other}), checkpoint.Position{}, kafkaconn.CodeTLS, "certificate")
	w.failLatest(with(&kafkaconn.TLS{}), checkpoint.Position{}, kafkaconn.CodeTLS, "certificate")
	w.failLatest(with(&kafkaconn.TLS{CA: text, ServerName: "elsewhere"}), checkpoint.Position{}, kafkaconn.CodeTLS, "elsewhere")
	w.failLatest(with(nil), checkpoint.Position{}, kafkaconn.CodeTLS, "TLS")

	bare := newWorld(t)
	bare.create("t", 1)
	s := bare.open(func(c *Config) {
		c.Cluster.TLS, c.Cluster.DialTimeout = &kafkaconn.TLS{Insecure: true}, kafkaconn.Duration(50*time.Millisecond)
		c.Patience = 300 * time.Millisecond
	}, "t")
	bare.failLatest(s, checkpoint.Position{}, kafkaconn.CodeTLS)
}

// TestBrokerGoesAway: connections break in the middle of a read, which goes on when the broker is there again.
func TestBrokerGoesAway(t *testing.T) {
	w := newWorld(t)
	w.create("t", 1)
	for i := range 50 {
		w.produce("t", 0, numbers("v-", 10*i, 10)...)
	}
	var down atomic.Bool
	var conns atomic.Int32
	s := w.open(func(c *Config) {
		c.FetchBytes = 1
		c.Cluster.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if down.Load() {
				down.Store(false)
				return nil, &net.OpError{Op: "dial", Net: network, Err: errors.New("connection refused")}
			}
			conns.Add(1)
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			return &fragile{Conn: conn, left: 4096, down: &down}, err
		}
	}, "t")
	got, _ := w.all(s, checkpoint.Position{})
	if len(got) != 500 || got[499] != "t-0@499 v-499" {
		t.Errorf("%d records", len(got))
	}
	if n := conns.Load(); n < 4 || n > 100 {
		t.Errorf("%d connections", n)
	}
}

// fragile breaks after so many bytes.
type fragile struct {
	net.Conn
	left int
	down *atomic.Bool
}

func (f *fragile) Read(b []byte) (int, error) {
	if f.left <= 0 {
		f.down.Store(true)
		return 0, errors.Join(net.ErrClosed, f.Conn.Close())
	}
	n, err := f.Conn.Read(b[:min(len(b), f.left)])
	f.left -= n
	return n, err
}
