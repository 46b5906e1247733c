package kafkaconn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"slices"

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
// error of a context and one that is a fault already come back as they are.
func (c *Config) Fault(place string, err error) error {
	if f := (*fault.Error)(nil); err == nil || errors.As(err, &f) {
		return err
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	code, way := c.classify(err)
	at := "connection " + c.Name
	if place != "" {
		at += ", " + place
	}
	return fault.New(code, at, err, way)
}

func (c *Config) classify(err error) (code, way string) {
	switch {
	case isAny(err, denied):
		return CodeDenied, "give the job's user the ACL that is missing on the cluster"
	case isTLS(err):
		return CodeTLS, "see that `tls` of the connection fits the brokers: on for a TLS listener, `ca` and `serverName` of its certificate"
	case isAuth(err):
		return CodeAuth, "see that mechanism, user and password (or token) of the connection's `sasl` are those of the cluster"
	case isVersion(err):
		return CodeVersion, "use brokers of Kafka 2.5 or later"
	case errors.As(err, new(*kerr.Error)):
		return CodeBroker, "look into the brokers' logs; the job goes on when it is started again"
	}
	return CodeUnreachable, "see that the brokers run and that their advertised addresses can be reached from here; the job goes on when it is started again"
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
