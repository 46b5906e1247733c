package kafkaconn

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/wasmill/wasmill/host/fault"
)

const (
	// DefaultDialTimeout bounds opening one connection, TLS included.
	DefaultDialTimeout = 10 * time.Second
	// DefaultRequestTimeout is how long a request is tried again, over all brokers, before it fails.
	DefaultRequestTimeout = 30 * time.Second

	defaultClientID = "wasmill"
	maxBrokers      = 1000
)

// Config is one cluster. The json names are those of the job file.
type Config struct {
	// Name is the connection's name, for messages.
	Name string `json:"-"`
	// Brokers are host:port of some brokers, from which the others are learned. One text may name several with commas
	// between them, as variables of the environment do.
	Brokers []string `json:"brokers"`
	// ClientID is shown in the brokers' logs and quotas; "" means wasmill.
	ClientID string `json:"clientId,omitempty"`
	TLS      *TLS   `json:"tls,omitempty"`  // nil: plain text
	SASL     *SASL  `json:"sasl,omitempty"` // nil: no authentication
	// DialTimeout and RequestTimeout: 0 means the defaults.
	DialTimeout    Duration `json:"dialTimeout,omitempty"`
	RequestTimeout Duration `json:"requestTimeout,omitempty"`
	// Use says what is done with the topics, for the words about an ACL that is missing.
	Use Use `json:"-"`
	// Warn takes one word when a broker cannot be reached any more, so that nobody looks at a silent program while requests
	// are tried again; nil takes none. It must be safe for use from several goroutines.
	Warn func(error) `json:"-"`
	// Dial opens a TCP connection; nil means the net package's. TLS is laid over what it returns.
	Dial func(ctx context.Context, network, address string) (net.Conn, error) `json:"-"`

	reach *reach // made by Parse, or else by Options; copies made later share it
}

// Use is what is done with the topics of a cluster.
type Use string

// The uses.
const (
	Reads  Use = "read"  // of a source
	Writes Use = "write" // of a sink
)

// Duration is a time.Duration that is text such as "10s" in JSON.
type Duration time.Duration

// UnmarshalJSON reads text as time.ParseDuration does. It must be positive.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("a duration is text such as \"10s\": %w", err)
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return err
	}
	if v <= 0 {
		return fmt.Errorf("duration %s is not positive", s)
	}
	*d = Duration(v)
	return nil
}

// MarshalJSON writes text.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

func (d Duration) or(def time.Duration) time.Duration {
	if d <= 0 {
		return def
	}
	return time.Duration(d)
}

// Parse reads the settings of a connection: a JSON object with the fields of Config and no others. Nothing of the
// settings is repeated in an error but names of fields.
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
	c.Name, c.reach = name, &reach{}
	return c, c.Check()
}

// Check says what is wrong with the settings, without reaching for the cluster.
func (c *Config) Check() error {
	brokers := c.brokers()
	if len(brokers) == 0 {
		return configFault(c.Name, "brokers are missing")
	}
	if len(brokers) > maxBrokers {
		return configFault(c.Name, fmt.Sprintf("%d brokers: a few to begin with are enough", len(brokers)))
	}
	for _, b := range brokers {
		if err := checkAddress(b); err != nil {
			return configFault(c.Name, err.Error())
		}
	}
	if c.TLS != nil {
		if _, err := c.TLS.Config(); err != nil {
			return configFault(c.Name, "tls: "+err.Error())
		}
	}
	if c.SASL != nil {
		if err := c.SASL.check(); err != nil {
			return configFault(c.Name, "sasl: "+err.Error())
		}
	}
	return nil
}

func (c *Config) brokers() []string {
	var out []string
	for _, text := range c.Brokers {
		for b := range strings.SplitSeq(text, ",") {
			out = append(out, strings.TrimSpace(b))
		}
	}
	return out
}

func checkAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("broker %.200q is not host:port", address)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 || host == "" {
		return fmt.Errorf("broker %.200q is not host:port", address)
	}
	return nil
}

// Options returns the options of a client of this cluster. Requests are tried again with back-off until RequestTimeout
// has passed and then fail.
func (c *Config) Options() ([]kgo.Opt, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	id := c.ClientID
	if id == "" {
		id = defaultClientID
	}
	if c.reach == nil {
		c.reach = &reach{}
	}
	dial, err := c.dialer(c.reach)
	if err != nil {
		return nil, configFault(c.Name, "tls: "+err.Error())
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(c.brokers()...),
		kgo.ClientID(id),
		kgo.SoftwareNameAndVersion("wasmill", "1"),
		kgo.Dialer(dial),
		kgo.WithHooks(c.reach),
		kgo.RetryTimeout(c.RequestTimeout.or(DefaultRequestTimeout)),
		kgo.RequestTimeoutOverhead(c.RequestTimeout.or(DefaultRequestTimeout)),
	}
	if c.SASL != nil {
		opts = append(opts, kgo.SASL(c.mechanism()))
	}
	return opts, nil
}

func configFault(name, what string) error {
	return fault.New(CodeConfig, "connection "+name, errors.New(what), "mend the connection in the job file")
}
