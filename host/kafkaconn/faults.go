package kafkaconn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/wasmill/wasmill/host/fault"
)

// The codes of faults about a cluster.
const (
	CodeConfig      = "kafka.config"      // the settings contradict each other
	CodeUnreachable = "kafka.unreachable" // no broker answers
	CodeTLS         = "kafka.tls"         // the two sides do not agree on TLS
	CodeAuth        = "kafka.auth"        // the broker does not take who we are
	CodeDenied      = "kafka.denied"      // an ACL is missing
	CodeVersion     = "kafka.version"     // the broker is too old for a request
	CodeBroker      = "kafka.broker"      // any other error that a broker answers with
)

var denied = []error{
	kerr.TopicAuthorizationFailed, kerr.GroupAuthorizationFailed, kerr.ClusterAuthorizationFailed,
	kerr.TransactionalIDAuthorizationFailed, kerr.DelegationTokenAuthorizationFailed,
}

// Fault puts an error of a client into words: place is what was asked for (a topic, a group), err what came of it. An
// error of a cancelled context and one that is a fault already come back as they are. The fault passes as IsPassing says.
func (c *Config) Fault(place string, err error) error {
	if f := (*fault.Error)(nil); err == nil || errors.As(err, &f) {
		return err
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	code, way := c.classify(place, err)
	at := "connection " + c.Name
	if place != "" {
		at += ", " + place
	}
	f := fault.New(code, at, err, way)
	f.Passes = IsPassing(err, c.reached())
	return f
}

func (c *Config) classify(place string, err error) (code, way string) {
	switch {
	case isAny(err, denied):
		return CodeDenied, c.wayOfACL(place, err)
	case errors.As(err, new(*kgo.ErrFirstReadEOF)) && c.reached():
		return CodeUnreachable, wayOfUnreachable
	case isTLS(err):
		return c.tlsFault(err)
	case isAuth(err):
		return CodeAuth, c.wayOfAuth(err)
	case isVersion(err):
		return CodeVersion, "use brokers of Kafka 2.5 or later"
	case errors.As(err, new(*kerr.Error)):
		return CodeBroker, "look into the brokers' logs; the job goes on when it is started again"
	}
	return CodeUnreachable, wayOfUnreachable
}

const wayOfUnreachable = "see that the brokers run and that their advertised addresses can be reached from here; the job goes on when they are there, or when it is started again"

// hungUp tells apart why a broker hangs up without a word. The client knows how far it came, and says so in its text alone.
func (c *Config) hungUp(err error) (code, way string) {
	text := err.Error()
	switch {
	case c.TLS == nil && strings.Contains(text, "is TLS missing"):
		return CodeTLS, "give the connection the `tls` that the listener asks for: `tls: {}`, with `ca` when the system does not know the authority of the brokers' certificate"
	case c.TLS != nil && strings.Contains(text, "after a dial"):
		return CodeTLS, "take `tls` out of the connection, or take the port of a TLS listener; the broker did not answer in TLS"
	case c.SASL == nil:
		return CodeAuth, "give the connection the `sasl` that the listener asks for; if there is none, see that the brokers do not hang up for want of `tls`, or because they go down"
	}
	return CodeTLS, "see that `tls` and `sasl` of the connection fit the listener, and that the brokers do not hang up because they go down"
}

// tlsFault tells apart what can be wrong with TLS.
func (c *Config) tlsFault(err error) (code, way string) {
	switch {
	case errors.Is(err, errWantsTLS):
		return CodeTLS, "give the connection `tls: {}`, with `ca` when the brokers' certificate is not signed by an authority that the system knows; or take the port of a plain listener"
	case errors.Is(err, errNoKafka):
		return CodeTLS, "see that `brokers` names the port of Kafka's own protocol"
	case errors.As(err, new(*kgo.ErrFirstReadEOF)):
		return c.hungUp(err)
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return CodeTLS, "put the certificate of the authority that signed the brokers' into `ca` of the connection's `tls`: ca: \"${file:ca.pem}\""
	case errors.As(err, new(x509.HostnameError)):
		return CodeTLS, "name the brokers as their certificate does, or give that name as `serverName` of the connection's `tls`"
	case expired(err):
		return CodeTLS, "renew the brokers' certificate; if it is good, set the clock of this machine"
	case errors.As(err, new(tls.AlertError)):
		return CodeTLS, "the broker refuses this client: give `cert` and `key` of the connection's `tls` when it asks for a certificate, signed by an authority that it knows"
	}
	return CodeTLS, "see that `tls` of the connection fits the brokers: on for a TLS listener, `ca` and `serverName` of its certificate"
}

func expired(err error) bool {
	var bad x509.CertificateInvalidError
	return errors.As(err, &bad) && bad.Reason == x509.Expired
}

func (c *Config) wayOfAuth(err error) string {
	switch {
	case errors.As(err, new(*tokenError)):
		return "see that `tokenUrl`, `clientId` and `clientSecret` of the connection's `sasl` are those of the token endpoint"
	case errors.Is(err, kerr.UnsupportedSaslMechanism):
		return "set `mechanism` of the connection's `sasl` to one that the listener has"
	case errors.Is(err, kerr.IllegalSaslState):
		return "take `sasl` out of the connection, or take the port of a listener with SASL"
	}
	return "see that mechanism, user and password (or token) of the connection's `sasl` are those of the cluster"
}

func isAny(err error, list []error) bool {
	return slices.ContainsFunc(list, func(e error) bool { return errors.Is(err, e) })
}

func isTLS(err error) bool {
	var first *kgo.ErrFirstReadEOF
	if errors.As(err, new(*handshakeError)) || errors.As(err, &first) && errors.Is(err, io.EOF) {
		// A broker that hangs up at once wants TLS or SASL where we offer none; the error's text says which.
		return true
	}
	return errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(x509.UnknownAuthorityError)) ||
		errors.As(err, new(tls.RecordHeaderError))
}

func isAuth(err error) bool {
	return errors.As(err, new(*tokenError)) || errors.Is(err, kerr.SaslAuthenticationFailed) ||
		errors.Is(err, kerr.UnsupportedSaslMechanism) || errors.Is(err, kerr.IllegalSaslState)
}

func isVersion(err error) bool {
	return errors.Is(err, kerr.UnsupportedVersion) || errors.Is(err, kerr.UnsupportedForMessageFormat)
}

// IsPassing reports whether the same request may succeed when it is made again: the way to a broker is broken, and it is
// not TLS or authentication that breaks it. reached says that the cluster has answered before: then a broker that hangs up
// at once is one that goes down, else one that wants TLS or SASL.
func IsPassing(err error, reached bool) bool {
	if errors.Is(err, context.Canceled) || isAuth(err) {
		return false
	}
	if errors.As(err, new(*kgo.ErrFirstReadEOF)) {
		return reached
	}
	if isTLS(err) {
		return errors.Is(err, context.DeadlineExceeded) // of a handshake
	}
	return !errors.As(err, new(*kerr.Error)) || kerr.IsRetriable(err)
}
