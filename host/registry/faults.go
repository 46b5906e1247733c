package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/rows/confluent"
)

// The codes of faults about a registry.
const (
	CodeConfig      = "registry.config"      // the settings contradict each other
	CodeUnreachable = "registry.unreachable" // no instance answers, or each is in trouble: it may pass
	CodeTLS         = "registry.tls"         // the two sides do not agree on TLS
	CodeDenied      = "registry.denied"      // it does not let us in
	CodeAnswer      = "registry.answer"      // what answers is no registry that we understand
	CodeUnknown     = "registry.unknown"     // it has no such subject, version or schema
	CodeRefused     = "registry.refused"     // it does not take the schema
	CodeChanged     = "registry.changed"     // an id stands for another schema than it did
	CodeKept        = "registry.kept"        // a file with a kept schema is damaged
)

// errNoSubject says that a subject, a version or a schema under it is not there.
var errNoSubject = errors.New("the registry has none")

// The error codes of the API that say what is not there.
const (
	noSubject = 40401
	noVersion = 40402
	noSchema  = 40403
)

// fault puts an error into words. what was asked for is part of its place.
func (c *Client) fault(what string, err error) error {
	place := "connection " + c.name + ", " + what
	answer := (*sr.ResponseError)(nil)
	switch {
	case errors.As(err, &answer):
		return c.answered(place, answer)
	case isTLS(err):
		return fault.New(CodeTLS, place, err, "see that `tls` of the connection fits the registry: `ca` and `serverName` of its certificate")
	case isAway(err):
		return fault.Passing(CodeUnreachable, place, err, "see that the registry runs and can be reached from here; the job goes on when it is there again")
	}
	return fault.New(CodeAnswer, place, err, "see that `urls` of the connection are those of a schema registry")
}

func (c *Client) answered(place string, a *sr.ResponseError) error {
	err := fmt.Errorf("the registry answers %d: %.400s", a.StatusCode, a.Error())
	switch {
	case a.ErrorCode == noSchema && a.Method == "GET":
		return fault.New(CodeUnknown, place, fmt.Errorf("%w: %w", confluent.ErrUnknown, err), "register the schema, or see that this is the registry that the records were written with")
	case a.ErrorCode == noSubject || a.ErrorCode == noVersion || a.ErrorCode == noSchema:
		return fault.New(CodeUnknown, place, fmt.Errorf("%w: %w", errNoSubject, err), "register the schema, or let the sink do it with `autoRegister: true` and its `text`")
	case a.StatusCode == 401 || a.StatusCode == 403:
		return fault.New(CodeDenied, place, err, "see that `auth` of the connection is right, and that it may do this in the registry")
	case a.StatusCode == 409 || a.StatusCode == 422:
		return fault.New(CodeRefused, place, err, "give a schema that the registry takes: see its compatibility rules")
	}
	return fault.New(CodeAnswer, place, err, "see that `urls` of the connection are those of a schema registry")
}

func (c *Client) nonsense(what string, err error) error {
	return fault.New(CodeAnswer, "connection "+c.name+", "+what, err, "see that `urls` of the connection are those of a schema registry that this version understands")
}

func isTLS(err error) bool {
	return errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(x509.UnknownAuthorityError)) ||
		errors.As(err, new(x509.HostnameError)) || errors.As(err, new(tls.RecordHeaderError)) || errors.As(err, new(tls.AlertError))
}

// isAway reports whether there was no answer, or one of a registry that is in trouble of its own.
func isAway(err error) bool {
	switch {
	case errors.As(err, new(*statusError)):
		return true
	case errors.Is(err, errTooLong) || errors.Is(err, errRedirect) || errors.As(err, new(*notJSONError)):
		return false
	}
	return errors.As(err, new(*url.Error)) || errors.As(err, new(net.Error)) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, context.DeadlineExceeded)
}
