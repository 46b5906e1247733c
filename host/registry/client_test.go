package registry

import (
	"context"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/rows/confluent"
)

func codeOf(err error) string {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.ErrCode
	}
	return ""
}

func TestSchemasWithWhatTheyNeed(t *testing.T) {
	f := newFake(t)
	c := client(t, Config{}, f.URL+"/")
	s, err := c.ByID(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range s.References {
		names = append(names, r.Name)
	}
	if s.ID != 2 || s.Format != confluent.Protobuf || !slices.Equal(names, []string{"c.proto", "b.proto"}) {
		t.Errorf("schema %d of %s needs %v", s.ID, s.Format, names)
	}
	if s, err = c.BySubject(t.Context(), "out", 0); err != nil || s.ID != 1 {
		t.Errorf("the newest: %v, %v", s, err)
	}
	if s, err = c.BySubject(t.Context(), "out", 1); err != nil || s.ID != 9 {
		t.Errorf("version 1: %v, %v", s, err)
	}
	if _, err = c.BySubject(t.Context(), "out", 7); codeOf(err) != CodeUnknown || errors.Is(err, confluent.ErrUnknown) {
		t.Errorf("version 7: %v", err)
	}
}

func TestRegistering(t *testing.T) {
	f := newFake(t)
	c := client(t, Config{}, f.URL)
	if _, err := c.Lookup(t.Context(), "new", confluent.Avro, `"string"`, false); codeOf(err) != CodeUnknown {
		t.Errorf("nobody asked to register it: %v", err)
	}
	if got := f.requests(); !slices.Equal(got, []string{"POST /subjects/new"}) {
		t.Errorf("asked %q", got)
	}
	for range 2 {
		s, err := c.Lookup(t.Context(), "new", confluent.Avro, `"string"`, true)
		if err != nil || s.ID != 50 {
			t.Errorf("%v, %v", s, err)
		}
	}
	if got := f.requests(); !slices.Equal(got, []string{"POST /subjects/new", "POST /subjects/new/versions", "POST /subjects/new", "POST /subjects/new"}) {
		t.Errorf("asked %q", got)
	}
}

// TestTrouble: what a registry can do wrong, whether it may pass, and how often it is asked.
func TestTrouble(t *testing.T) {
	say := func(status int, content, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", content)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	const js = "application/vnd.schemaregistry.v1+json"
	for _, c := range []struct {
		name   string
		id     int32
		answer http.HandlerFunc // nil: the fake's own
		code   string
		passes bool
		asked  int
	}{
		{"no such schema", 99, nil, CodeUnknown, false, 1},
		{"a schema that needs one that is gone", 5, nil, "", false, 2},
		{"a schema that needs others without end", 6, nil, CodeAnswer, false, MaxReferences + 1},
		{"a type that we do not know", 4, nil, CodeAnswer, false, 1},
		{"an empty answer", 7, nil, CodeAnswer, false, 1},
		{"500", 1, say(500, js, `{"error_code":50001,"message":"store"}`), CodeUnreachable, true, rounds},
		{"503 of a proxy", 1, say(503, "text/html", "<html>"), CodeUnreachable, true, rounds},
		{"429", 1, say(429, js, `{"error_code":429}`), CodeUnreachable, true, rounds},
		{"401", 1, say(401, "text/html", "<html>"), CodeDenied, false, 1},
		{"403", 1, say(403, js, `{"error_code":40301,"message":"no"}`), CodeDenied, false, 1},
		{"404 of something else", 1, say(404, "text/html", "<html>"), CodeAnswer, false, 1},
		{"404 of a path", 1, say(404, js, `{"error_code":404,"message":"HTTP 404 Not Found"}`), CodeAnswer, false, 1},
		{"409", 1, say(409, js, `{"error_code":409,"message":"incompatible"}`), CodeRefused, false, 1},
		{"a page", 1, say(200, "text/html", "<html>"), CodeAnswer, false, 1},
		{"no content type", 1, say(200, "", "{}"), CodeAnswer, false, 1},
		{"JSON that is none", 1, say(200, js, `{"schema":`), CodeAnswer, false, 1},
		{"JSON of another shape", 1, say(200, js, `{"schema":7}`), CodeAnswer, false, 1},
		{"a redirection", 1, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, CodeAnswer, false, 1},
		{"a huge body", 1, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", js)
			chunk := []byte(strings.Repeat(" ", 1<<20))
			for range 20 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}, CodeAnswer, false, 1},
		{"a body that is cut", 1, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", js)
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte(`{"schema"`))
		}, CodeUnreachable, true, rounds},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t)
			f.inTrouble(c.answer)
			s, err := client(t, Config{}, f.URL).ByID(t.Context(), c.id)
			if err == nil || codeOf(err) != c.code && c.code != "" || fault.IsPassing(err) != c.passes {
				t.Errorf("%v, %v (code %s, passing %t)", s, err, codeOf(err), fault.IsPassing(err))
			}
			if unknown := c.id == 99 || c.id == 5; errors.Is(err, confluent.ErrUnknown) != unknown {
				t.Errorf("%v: is unknown %t", err, !unknown)
			}
			if n := len(f.requests()); n != c.asked {
				t.Errorf("asked %d times, want %d", n, c.asked)
			}
		})
	}
}

func TestRegistryThatIsAway(t *testing.T) {
	f := newFake(t)
	gone := httptest.NewServer(nil)
	gone.Close()
	if _, err := client(t, Config{}, gone.URL).ByID(t.Context(), 1); codeOf(err) != CodeUnreachable || !fault.IsPassing(err) {
		t.Errorf("%v", err)
	}
	bad := newFake(t)
	bad.inTrouble(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	s, err := client(t, Config{}, gone.URL, bad.URL, f.URL).ByID(t.Context(), 1)
	if err != nil || s.Text != `"long"` {
		t.Errorf("the third instance: %v, %v", s, err)
	}
	if got := bad.requests(); len(got) != 1 {
		t.Errorf("the second was asked %q", got)
	}
}

func TestSlowRegistry(t *testing.T) {
	f := newFake(t)
	f.inTrouble(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	c := client(t, Config{Timeout: Duration(30 * time.Millisecond)}, f.URL)
	if _, err := c.ByID(t.Context(), 1); codeOf(err) != CodeUnreachable || !fault.IsPassing(err) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.ByID(ctx, 1); !errors.Is(err, context.Canceled) || codeOf(err) != "" {
		t.Errorf("a run that ends: %v", err)
	}
}

func TestWhoWeAre(t *testing.T) {
	for _, c := range []struct {
		auth Auth
		want string
	}{
		{Auth{Username: "u", Password: "p"}, "Basic dTpw"},
		{Auth{Token: "t"}, "Bearer t"},
	} {
		f := newFake(t)
		var got string
		f.inTrouble(func(w http.ResponseWriter, r *http.Request) {
			got = r.Header.Get("Authorization")
			w.WriteHeader(http.StatusUnauthorized)
		})
		_, err := client(t, Config{Auth: &c.auth}, f.URL).ByID(t.Context(), 1)
		if codeOf(err) != CodeDenied || got != c.want {
			t.Errorf("%q, %v", got, err)
		}
		if strings.Contains(err.Error(), c.want) {
			t.Errorf("it tells the secret: %v", err)
		}
	}
}

func TestTLS(t *testing.T) {
	f := newFake(t)
	secure := httptest.NewTLSServer(f)
	t.Cleanup(secure.Close)
	if _, err := client(t, Config{}, secure.URL).ByID(t.Context(), 1); codeOf(err) != CodeTLS || fault.IsPassing(err) {
		t.Errorf("a certificate that nobody knows: %v", err)
	}
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}))
	if _, err := client(t, Config{TLS: &TLS{CA: ca}}, secure.URL).ByID(t.Context(), 1); err != nil {
		t.Errorf("its own certificate: %v", err)
	}
	if _, err := client(t, Config{TLS: &TLS{Insecure: true}}, secure.URL).ByID(t.Context(), 1); err != nil {
		t.Errorf("any certificate: %v", err)
	}
}

func TestSettings(t *testing.T) {
	good := `{"urls":["https://a/x","http://b:8081"],"auth":{"username":"u","password":"p"},"tls":{"serverName":"a"},"timeout":"2s"}`
	if c, err := Parse("main", []byte(good)); err != nil || len(c.URLs) != 2 || time.Duration(c.Timeout) != 2*time.Second {
		t.Errorf("%+v, %v", c, err)
	}
	for _, bad := range []string{
		``, `{}`, `{"urls":[]}`, `{"urls":["a:8081"]}`, `{"urls":["ftp://a"]}`, `{"urls":["http://"]}`, `{"urls":["http://u:secret@a"]}`,
		`{"urls":["http://a?x=1"]}`, `{"urls":["http://a"],"auth":{}}`, `{"urls":["http://a"],"auth":{"username":"u","token":"secret"}}`,
		`{"urls":["http://a"],"auth":{"password":"secret"}}`, `{"urls":["http://a"],"tls":{"ca":"x"}}`, `{"urls":["http://a"],"tls":{"cert":"x"}}`,
		`{"urls":["http://a"],"timeout":"0s"}`, `{"urls":["http://a"],"timeout":5}`, `{"url":"http://a"}`, `{"urls":["http://a"]} {}`,
		`{"urls":["http://a"],"tls":{"cert":"x","key":"secret"}}`,
	} {
		_, err := Parse("main", []byte(bad))
		if codeOf(err) != CodeConfig || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
