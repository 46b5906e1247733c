package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/rows/confluent"
)

const (
	// rounds is how often all instances are asked before a registry counts as away, with pauses from firstPause on, each
	// four times as long as the one before.
	rounds     = 3
	firstPause = 100 * time.Millisecond
	// MaxReferences bounds the schemas that one schema may need.
	MaxReferences = 200
	// MaxSchema bounds the bytes of a schema with all that it needs.
	MaxSchema = 4 << 20
)

// Client asks a registry. It may be used by several goroutines.
type Client struct {
	name  string
	api   *sr.Client
	http  *http.Client
	pause func(ctx context.Context, d time.Duration) error
}

// NewClient returns a client. It reaches for nothing.
func NewClient(cfg Config) (*Client, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 2, IdleConnTimeout: 30 * time.Second,
	}
	if cfg.TLS != nil {
		conf, err := cfg.TLS.Config()
		if err != nil {
			return nil, configFault(cfg.Name, "tls: "+err.Error())
		}
		transport.TLSClientConfig = conf
	}
	timeout := time.Duration(cfg.Timeout)
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	web := &http.Client{
		Transport: &guard{next: transport}, Timeout: timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	opts := []sr.ClientOpt{sr.URLs(slices.Clone(cfg.URLs)...), sr.UserAgent("wasmill"), sr.HTTPClient(web)}
	if a := cfg.Auth; a != nil && a.Token != "" {
		opts = append(opts, sr.BearerToken(a.Token))
	} else if a != nil {
		opts = append(opts, sr.BasicAuth(a.Username, a.Password))
	}
	api, err := sr.NewClient(opts...)
	if err != nil {
		return nil, configFault(cfg.Name, err.Error())
	}
	return &Client{name: cfg.Name, api: api, http: web, pause: pause}, nil
}

// Close gives connections up that nothing is asked over.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func pause(ctx context.Context, d time.Duration) error {
	wait, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-wait.Done()
	return ctx.Err()
}

// try makes a request, again and again while what goes wrong may pass.
func (c *Client) try(ctx context.Context, what string, ask func() error) error {
	wait := firstPause
	for n := 1; ; n++ {
		err := ask()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("ask for %s: %w", what, ctx.Err())
		}
		err = c.fault(what, err)
		if n == rounds || !fault.IsPassing(err) {
			return err
		}
		if perr := c.pause(ctx, wait); perr != nil {
			return perr
		}
		wait *= 4
	}
}

// ByID returns the schema with an id and all that it refers to.
func (c *Client) ByID(ctx context.Context, id int32) (*confluent.Schema, error) {
	var s sr.Schema
	err := c.try(ctx, fmt.Sprintf("schema %d", id), func() (err error) {
		s, err = c.api.SchemaByID(ctx, int(id))
		return err
	})
	if err != nil {
		return nil, err
	}
	return c.complete(ctx, int(id), s)
}

// ByGUID returns the schema with a GUID and all that it refers to.
func (c *Client) ByGUID(ctx context.Context, guid string) (*confluent.Schema, error) {
	var s sr.SubjectSchema
	err := c.try(ctx, "schema "+guid, func() (err error) {
		s, err = c.api.SchemaByGUID(ctx, guid)
		return err
	})
	if err != nil {
		return nil, err
	}
	return c.complete(ctx, s.ID, s.Schema)
}

// BySubject returns a version of a subject's schema; 0 is the newest.
func (c *Client) BySubject(ctx context.Context, subject string, version int) (*confluent.Schema, error) {
	what, ask := fmt.Sprintf("version %d of subject %s", version, subject), version
	if version == 0 {
		what, ask = "the newest version of subject "+subject, newest
	}
	var s sr.SubjectSchema
	err := c.try(ctx, what, func() (err error) {
		s, err = c.api.SchemaByVersion(ctx, subject, ask)
		return err
	})
	if err != nil {
		return nil, err
	}
	return c.complete(ctx, s.ID, s.Schema)
}

// newest is how the library asks for the latest version, and for an id and a version of the registry's choice.
const newest = -1

// Lookup returns a schema that is registered under a subject, as the registry has it. register registers it when it is not.
func (c *Client) Lookup(ctx context.Context, subject string, format confluent.Format, text string, register bool) (*confluent.Schema, error) {
	in := sr.Schema{Schema: text, Type: typeOf(format)}
	what := "the schema under subject " + subject
	var s sr.SubjectSchema
	err := c.try(ctx, what, func() (err error) {
		s, err = c.api.LookupSchema(ctx, subject, in)
		return err
	})
	if register && errors.Is(err, errNoSubject) {
		err = c.try(ctx, what, func() (err error) {
			if _, err = c.api.RegisterSchema(ctx, subject, in, newest, newest); err == nil {
				s, err = c.api.LookupSchema(ctx, subject, in)
			}
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	return c.complete(ctx, s.ID, s.Schema)
}

// complete finds what a schema refers to, each before what needs it.
func (c *Client) complete(ctx context.Context, id int, s sr.Schema) (*confluent.Schema, error) {
	format, err := formatOf(s.Type)
	if err != nil {
		return nil, c.nonsense(fmt.Sprintf("schema %d", id), err)
	}
	if id < 0 || id > 1<<31-1 || s.Schema == "" {
		return nil, c.nonsense("a schema", fmt.Errorf("its id is %d, and its text has %d bytes", id, len(s.Schema)))
	}
	out := &confluent.Schema{ID: int32(id), Format: format, Text: s.Schema}
	f := follower{c: c, seen: map[string]bool{}, size: len(s.Schema)}
	if err := f.follow(ctx, s.References, 0); err != nil {
		return nil, err
	}
	out.References = f.out
	return out, nil
}

type follower struct {
	c    *Client
	seen map[string]bool
	out  []confluent.Reference
	size int
}

func (f *follower) follow(ctx context.Context, refs []sr.SchemaReference, depth int) error {
	for _, r := range refs {
		if f.seen[r.Name] {
			continue
		}
		f.seen[r.Name] = true
		what := fmt.Sprintf("version %d of subject %s", r.Version, r.Subject)
		if len(f.seen) > MaxReferences || depth > MaxReferences {
			return f.c.nonsense(what, fmt.Errorf("a schema needs more than %d others", MaxReferences))
		}
		var s sr.SubjectSchema
		err := f.c.try(ctx, what, func() (err error) {
			s, err = f.c.api.SchemaByVersion(ctx, r.Subject, r.Version)
			return err
		})
		if errors.Is(err, errNoSubject) {
			return fmt.Errorf("%w: it needs %w", confluent.ErrUnknown, err)
		}
		if err != nil {
			return err
		}
		if f.size += len(s.Schema.Schema); f.size > MaxSchema {
			return f.c.nonsense(what, fmt.Errorf("a schema with all that it needs has more than %d bytes", MaxSchema))
		}
		if err := f.follow(ctx, s.References, depth+1); err != nil {
			return err
		}
		f.out = append(f.out, confluent.Reference{Name: r.Name, Text: s.Schema.Schema})
	}
	return nil
}

func typeOf(f confluent.Format) sr.SchemaType {
	switch f {
	case confluent.Protobuf:
		return sr.TypeProtobuf
	case confluent.JSONSchema:
		return sr.TypeJSON
	}
	return sr.TypeAvro
}

func formatOf(t sr.SchemaType) (confluent.Format, error) {
	switch t {
	case sr.TypeAvro:
		return confluent.Avro, nil
	case sr.TypeProtobuf:
		return confluent.Protobuf, nil
	case sr.TypeJSON:
		return confluent.JSONSchema, nil
	}
	return "", fmt.Errorf("its type is %v, which this version does not know", t)
}
