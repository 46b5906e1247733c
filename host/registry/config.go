package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/wasmill/wasmill/host/clienttls"
	"github.com/wasmill/wasmill/host/fault"
)

// Defaults and limits of a Config.
const (
	DefaultTimeout = 5 * time.Second
	maxURLs        = 100
)

// Config is one registry. The json names are those of the job file.
type Config struct {
	// Name is the connection's name, for messages and for what is kept.
	Name string `json:"-"`
	// URLs are those of instances of one registry. They are tried in order.
	URLs []string `json:"urls"`
	Auth *Auth    `json:"auth,omitempty"` // nil: none
	TLS  *TLS     `json:"tls,omitempty"`  // nil: the system's certificates, for https
	// Timeout is what one request to one instance may take; 0 means the default.
	Timeout Duration `json:"timeout,omitempty"`
}

// Auth says who we are: a user with a password, or a token.
type Auth struct {
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	Token    string `json:"token,omitempty"`
}

// TLS says how the connections are encrypted.
type TLS = clienttls.Settings

// Duration is a time.Duration that is text such as "5s" in JSON.
type Duration time.Duration

// UnmarshalJSON reads text as time.ParseDuration does. It must be positive.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("a duration is text such as \"5s\": %w", err)
	}
	v, err := time.ParseDuration(s)
	if err != nil || v <= 0 {
		return fmt.Errorf("%.40q is no positive duration", s)
	}
	*d = Duration(v)
	return nil
}

// Parse reads the settings of a connection: a JSON object with the fields of Config and no others. Nothing of the settings
// is repeated in an error but names of fields and hosts.
func Parse(name string, settings []byte) (Config, error) {
	c := Config{}
	d := json.NewDecoder(bytes.NewReader(settings))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return Config{}, configFault(name, err.Error())
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Config{}, configFault(name, "more than one JSON text")
	}
	c.Name = name
	return c, c.Check()
}

// Check says what is wrong with the settings, without reaching for the registry.
func (c *Config) Check() error {
	if len(c.URLs) == 0 || len(c.URLs) > maxURLs {
		return configFault(c.Name, fmt.Sprintf("urls are 1 to %d, and these are %d", maxURLs, len(c.URLs)))
	}
	for i, text := range c.URLs {
		u, err := url.Parse(text)
		switch {
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			return configFault(c.Name, fmt.Sprintf("url %d is no http:// or https:// URL", i+1))
		case u.User != nil:
			return configFault(c.Name, fmt.Sprintf("url %d holds a user: give it under auth, where it is not shown in messages", i+1))
		case u.RawQuery != "" || u.Fragment != "":
			return configFault(c.Name, fmt.Sprintf("url %d holds more than a host and a path", i+1))
		}
	}
	if a := c.Auth; a != nil && ((a.Token != "") == (a.Username != "") || a.Token != "" && a.Password != "") {
		return configFault(c.Name, "auth: give a username with its password, or a token")
	}
	if c.TLS != nil {
		if _, err := c.TLS.Config(); err != nil {
			return configFault(c.Name, "tls: "+err.Error())
		}
	}
	return nil
}

func configFault(name, what string) error {
	return fault.New(CodeConfig, "connection "+name, errors.New(what), "mend the connection in the job file")
}
