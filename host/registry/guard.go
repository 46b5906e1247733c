package registry

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
)

// maxBody bounds an answer. A schema text in JSON may be twice as long as it is by itself.
const maxBody = 2*MaxSchema + 64<<10

var (
	errTooLong  = fmt.Errorf("the answer has more than %d bytes", maxBody)
	errRedirect = errors.New("the answer is a redirection, which is not followed: name the registry's own URL")
)

// statusError is an answer that says that the registry, or what stands before it, is in trouble of its own. To the library
// it is a broken connection, so that it tries the next instance.
type statusError struct{ status string }

func (e *statusError) Error() string { return "the answer is " + e.status }

// notJSONError is an answer that no registry gives.
type notJSONError struct{ status, content string }

func (e *notJSONError) Error() string {
	return fmt.Sprintf("the answer is %s with content type %.100q, and not a registry's JSON", e.status, e.content)
}

// guard looks at answers before the library reads them: it reads all of a body whatever its size, and takes any that parses.
type guard struct{ next *http.Transport }

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := g.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if err := judge(resp); err != nil {
		return nil, errors.Join(err, resp.Body.Close())
	}
	resp.Body = &limited{ReadCloser: resp.Body, left: maxBody}
	return resp, nil
}

// CloseIdleConnections is what http.Client calls.
func (g *guard) CloseIdleConnections() { g.next.CloseIdleConnections() }

func judge(resp *http.Response) error {
	switch code := resp.StatusCode; {
	case code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout:
		return &statusError{resp.Status}
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return nil // proxies answer so too, in any form
	case code >= 300 && code < 400:
		return errRedirect
	}
	content := resp.Header.Get("Content-Type")
	kind, _, err := mime.ParseMediaType(content)
	if err != nil || kind != "application/json" && !strings.HasSuffix(kind, "+json") {
		return &notJSONError{resp.Status, content}
	}
	return nil
}

type limited struct {
	io.ReadCloser
	left int
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errTooLong
	}
	n, err := l.ReadCloser.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}
