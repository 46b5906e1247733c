package kafkaconn

import (
	"context"
	"crypto/tls"
	"errors"
	"net"

	"github.com/wasmill/wasmill/host/clienttls"
)

// TLS says how the connections are encrypted.
type TLS = clienttls.Settings

// handshakeError tells a failed handshake from a failed dial.
type handshakeError struct{ err error }

func (e *handshakeError) Error() string { return "TLS handshake: " + e.err.Error() }
func (e *handshakeError) Unwrap() error { return e.err }

// dialer opens connections to brokers, with TLS when it is set, and keeps a record of them.
func (c *Config) dialer(r *reach) (func(context.Context, string, string) (net.Conn, error), error) {
	dial := c.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	var conf *tls.Config
	if c.TLS != nil {
		var err error
		if conf, err = c.TLS.Config(); err != nil {
			return nil, err
		}
	}
	timeout := c.DialTimeout.or(DefaultDialTimeout)
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		conn, err := dial(ctx, network, address)
		switch {
		case err != nil:
			r.failed(ctx, c, address, err)
			return nil, err
		case conf == nil:
			conn = &plainConn{Conn: conn}
		default:
			if conn, err = handshake(ctx, conn, conf, address); err != nil {
				return nil, err
			}
		}
		r.made(address)
		return conn, nil
	}, nil
}

// errWantsTLS and errNoKafka are what a broker's first bytes give away to a client that speaks plain text.
var (
	errWantsTLS = &handshakeError{errors.New("the broker answers with TLS, and the connection has no `tls`")}
	errNoKafka  = &handshakeError{errors.New("what answers speaks HTTP, and not the protocol of Kafka")}
)

// plainConn looks at the first bytes that a broker sends: those of a TLS alert (RFC 8446 5.1) would be taken for a length
// of 350 MB, and asked for again without end.
type plainConn struct {
	net.Conn
	looked bool
}

func (p *plainConn) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	if p.looked || n == 0 {
		return n, err
	}
	p.looked = true
	switch {
	case n >= 2 && b[0] == tlsAlert && b[1] == tlsMajor:
		return 0, errWantsTLS
	case n >= 4 && string(b[:4]) == "HTTP":
		return 0, errNoKafka
	}
	return n, err
}

const (
	tlsAlert = 0x15
	tlsMajor = 0x03
)

func handshake(ctx context.Context, conn net.Conn, conf *tls.Config, address string) (net.Conn, error) {
	if conf.ServerName == "" {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		conf = conf.Clone()
		conf.ServerName = host
	}
	out := tls.Client(conn, conf)
	if err := out.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(&handshakeError{err}, conn.Close())
	}
	return out, nil
}
