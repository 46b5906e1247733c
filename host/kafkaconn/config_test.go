package kafkaconn

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/wasmill/wasmill/host/fault"
)

func codeOf(err error) string {
	var f *fault.Error
	if errors.As(err, &f) {
		return f.Code()
	}
	return ""
}

func TestParse(t *testing.T) {
	for name, c := range map[string]struct{ text, says string }{
		"the least":           {`{"brokers":["b:9092"]}`, ""},
		"all":                 {`{"brokers":["b:9092"],"clientId":"me","tls":{"serverName":"b"},"sasl":{"mechanism":"scram-sha-512","username":"u","password":"p"},"dialTimeout":"2s","requestTimeout":"1m"}`, ""},
		"several in one":      {`{"brokers":["a:1, b:2"]}`, ""},
		"IPv6":                {`{"brokers":["[::1]:9092"]}`, ""},
		"token":               {`{"brokers":["b:1"],"sasl":{"mechanism":"oauthbearer","token":"t"}}`, ""},
		"token endpoint":      {`{"brokers":["b:1"],"sasl":{"mechanism":"oauthbearer","tokenUrl":"https://id/token","clientId":"c","clientSecret":"s"}}`, ""},
		"no JSON":             {`{`, "unexpected"},
		"two texts":           {`{"brokers":["b:1"]} {}`, "more than one"},
		"no brokers":          {`{}`, "brokers are missing"},
		"empty broker":        {`{"brokers":["b:1,"]}`, "not host:port"},
		"port":                {`{"brokers":["b:70000"]}`, "not host:port"},
		"unknown":             {`{"brokers":["b:1"],"pasword":"s3cret"}`, "pasword"},
		"number for duration": {`{"brokers":["b:1"],"dialTimeout":5}`, "duration is text"},
		"negative":            {`{"brokers":["b:1"],"dialTimeout":"-1s"}`, "not positive"},
		"ca":                  {`{"brokers":["b:1"],"tls":{"ca":"s3cret"}}`, "no certificate"},
		"cert alone":          {`{"brokers":["b:1"],"tls":{"cert":"s3cret"}}`, "belong together"},
		"odd pair":            {`{"brokers":["b:1"],"tls":{"cert":"s3cret","key":"s3cret"}}`, "PEM"},
		"mechanism":           {`{"brokers":["b:1"],"sasl":{"mechanism":"kerberos"}}`, "kerberos"},
		"two tokens":          {`{"brokers":["b:1"],"sasl":{"mechanism":"oauthbearer","token":"s3cret","tokenUrl":"https://x"}}`, "either"},
		"token address":       {`{"brokers":["b:1"],"sasl":{"mechanism":"oauthbearer","tokenUrl":"id/token"}}`, "not an http address"},
		"token client":        {`{"brokers":["b:1"],"sasl":{"mechanism":"oauthbearer","tokenUrl":"https://x"}}`, "clientId and clientSecret"},
	} {
		got, err := Parse("main", []byte(c.text))
		if c.says == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			opts, err := got.Options()
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if err := kgo.ValidateOpts(opts...); err != nil {
				t.Errorf("%s: the client does not take the options: %v", name, err)
			}
			continue
		}
		if codeOf(err) != CodeConfig || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v, want %s with %q", name, err, CodeConfig, c.says)
		}
	}
}

func TestFault(t *testing.T) {
	c := Config{Name: "main"}
	for name, x := range map[string]struct {
		err     error
		code    string
		passing bool
	}{
		"denied":          {kerr.TopicAuthorizationFailed, CodeDenied, false},
		"password":        {kerr.SaslAuthenticationFailed, CodeAuth, false},
		"no token":        {&tokenError{io.EOF}, CodeAuth, false},
		"handshake":       {&handshakeError{errors.New("x509: unknown authority")}, CodeTLS, false},
		"slow handshake":  {&handshakeError{context.DeadlineExceeded}, CodeTLS, true},
		"old broker":      {kerr.UnsupportedVersion, CodeVersion, false},
		"leader moves":    {kerr.NotLeaderForPartition, CodeBroker, true},
		"broken off":      {io.ErrUnexpectedEOF, CodeUnreachable, true},
		"took too long":   {context.DeadlineExceeded, CodeUnreachable, true},
		"another mistake": {kerr.InvalidRequest, CodeBroker, false},
	} {
		f := c.Fault("topic t", x.err)
		if codeOf(f) != x.code || !strings.Contains(f.Error(), "connection main, topic t") || !errors.Is(f, x.err) {
			t.Errorf("%s: %v (%s), want %s", name, f, codeOf(f), x.code)
		}
		if got := IsPassing(x.err, true); got != x.passing {
			t.Errorf("%s: passing is %t", name, got)
		}
		if again := c.Fault("elsewhere", f); again != f {
			t.Errorf("%s: a fault is put into words again: %v", name, again)
		}
	}
	if err := c.Fault("x", context.Canceled); err != context.Canceled {
		t.Errorf("a cancelled call: %v", err)
	}
	if err := c.Fault("x", nil); err != nil {
		t.Errorf("no error: %v", err)
	}
}

func TestToken(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		body, _ := io.ReadAll(r.Body)
		answers := map[string]string{"good": `{"access_token":"t-1"}`, "html": `<html>`, "none": `{}`}
		if password != "s3cret" || string(body) != "grant_type=client_credentials&scope=kafka" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, answers[user])
	}))
	defer server.Close()
	for _, x := range []struct{ client, secret, token, says string }{
		{"good", "s3cret", "t-1", ""},
		{"good", "wrong", "", "401"},
		{"html", "s3cret", "", "no JSON"},
		{"none", "s3cret", "", "without access_token"},
	} {
		c := Config{Name: "main", Brokers: []string{"b:1"}, DialTimeout: Duration(5 * time.Second), SASL: &SASL{
			Mechanism: OAuthBearer, TokenURL: server.URL, ClientID: x.client, ClientSecret: x.secret, Scope: "kafka",
		}}
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
		_, first, err := c.mechanism().Authenticate(t.Context(), "b")
		if x.says == "" {
			if err != nil || !strings.Contains(string(first), "auth=Bearer "+x.token) {
				t.Errorf("%s: %q, %v", x.client, first, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), x.says) || strings.Contains(err.Error(), "s3cret") || codeOf(c.Fault("", err)) != CodeAuth {
			t.Errorf("%s: %v, want %q", x.client, err, x.says)
		}
	}
}
