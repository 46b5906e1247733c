package kafkaconn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// The mechanisms of SASL.
const (
	Plain       = "plain"
	Scram256    = "scram-sha-256"
	Scram512    = "scram-sha-512"
	OAuthBearer = "oauthbearer"
)

// SASL says who we are. PLAIN and SCRAM take Username and Password. OAUTHBEARER takes a Token, or the address of an
// OAuth 2.0 token endpoint that gives one for client credentials (RFC 6749 4.4).
type SASL struct {
	Mechanism string `json:"mechanism"`
	Username  string `json:"username,omitempty"`
	Password  string `json:"password,omitempty"`

	Token        string            `json:"token,omitempty"`
	TokenURL     string            `json:"tokenUrl,omitempty"`
	ClientID     string            `json:"clientId,omitempty"`
	ClientSecret string            `json:"clientSecret,omitempty"`
	Scope        string            `json:"scope,omitempty"`
	Extensions   map[string]string `json:"extensions,omitempty"`
}

func (s *SASL) check() error {
	switch s.Mechanism {
	case Plain, Scram256, Scram512:
		if s.Username == "" || s.Password == "" {
			return errors.New(s.Mechanism + " needs username and password")
		}
	case OAuthBearer:
		if (s.Token == "") == (s.TokenURL == "") {
			return errors.New("oauthbearer needs either token or tokenUrl")
		}
		if s.TokenURL == "" {
			return nil
		}
		u, err := url.Parse(s.TokenURL)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return errors.New("tokenUrl is not an http address")
		}
		if s.ClientID == "" || s.ClientSecret == "" {
			return errors.New("tokenUrl needs clientId and clientSecret")
		}
	case "":
		return errors.New("mechanism is missing")
	default:
		return fmt.Errorf("mechanism %.50q is none of %s, %s, %s, %s", s.Mechanism, Plain, Scram256, Scram512, OAuthBearer)
	}
	return nil
}

func (c *Config) mechanism() sasl.Mechanism {
	s := c.SASL
	switch s.Mechanism {
	case Plain:
		return plain.Auth{User: s.Username, Pass: s.Password}.AsMechanism()
	case Scram256:
		return scram.Auth{User: s.Username, Pass: s.Password}.AsSha256Mechanism()
	case Scram512:
		return scram.Auth{User: s.Username, Pass: s.Password}.AsSha512Mechanism()
	}
	return oauth.Oauth(func(ctx context.Context) (oauth.Auth, error) {
		token := s.Token
		if s.TokenURL != "" {
			var err error
			if token, err = c.fetchToken(ctx); err != nil {
				return oauth.Auth{}, &tokenError{err}
			}
		}
		return oauth.Auth{Token: token, Extensions: s.Extensions}, nil
	})
}

// tokenError tells a token endpoint that gives no token from a broker that refuses one.
type tokenError struct{ err error }

func (e *tokenError) Error() string { return "no token: " + e.err.Error() }
func (e *tokenError) Unwrap() error { return e.err }

// maxToken bounds the answer of a token endpoint.
const maxToken = 1 << 20

// fetchToken asks for a token for one connection. Connections are few and long, so none is kept.
func (c *Config) fetchToken(ctx context.Context) (token string, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.DialTimeout.or(DefaultDialTimeout))
	defer cancel()
	form := url.Values{"grant_type": {"client_credentials"}}
	if c.SASL.Scope != "" {
		form.Set("scope", c.SASL.Scope)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.SASL.TokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	req.SetBasicAuth(url.QueryEscape(c.SASL.ClientID), url.QueryEscape(c.SASL.ClientSecret))
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, DialContext: c.Dial, Proxy: http.ProxyFromEnvironment},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the token endpoint answers %s", resp.Status)
	}
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxToken)).Decode(&answer); err != nil {
		return "", errors.New("the token endpoint answers with no JSON")
	}
	if answer.AccessToken == "" {
		return "", errors.New("the token endpoint answers without access_token")
	}
	return answer.AccessToken, nil
}
