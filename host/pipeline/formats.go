package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"strconv"
	"sync"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/job"
	"github.com/wasmill/wasmill/host/registry"
	"github.com/wasmill/wasmill/host/rows/confluent"
	"github.com/wasmill/wasmill/host/sink"
	kafkasink "github.com/wasmill/wasmill/host/sink/kafka"
	"github.com/wasmill/wasmill/host/source"
	kafkasource "github.com/wasmill/wasmill/host/source/kafka"
)

// Formats are laid around the drivers: a source of a topic hands on what a decoder makes of its records, and a sink gets
// what an encoder makes of a stage's. Digests are taken inside of both, over the JSON that transforms see.

// CodeSchema is the code of a schema that a sink cannot write by.
const CodeSchema = "sink.schema"

// schemasDir is the folder of the checkpoint that keeps schemas, by connection.
const schemasDir = "schemas"

// schemas returns the store of a registry. A store that reads only takes what is kept as it is.
func (p *Program) schemas(j *job.Job, name string, readOnly bool) (*registry.Store, error) {
	for i := range j.Connections {
		c := &j.Connections[i]
		if c.Kind != "schemaRegistry" || c.Name != name {
			continue
		}
		conf, err := registry.Parse(name, c.Settings)
		if err != nil {
			return nil, err
		}
		client, err := registry.NewClient(conf)
		if err != nil {
			return nil, err
		}
		return registry.NewStore(registry.StoreConfig{
			Client: client, Files: p.env.Files, Dir: path.Join(j.Checkpoint, schemasDir, name), ReadOnly: readOnly,
			Warn: p.warn("schemas of " + name), Clock: p.env.Clock.Now,
		}), nil
	}
	return nil, fmt.Errorf("no schemaRegistry connection %q", name)
}

// decoded is a source of topics whose records are decoded as they are read.
type decoded struct {
	*kafkasource.Source
	store        *registry.Store
	values, keys *confluent.Decoder // nil: raw bytes
}

// decode lays the formats of a source of topics around it.
func (p *Program) decode(bare source.Source, f job.Formats, readOnly bool) (source.Source, error) {
	s, ok := bare.(*kafkasource.Source)
	if !ok || !f.Framed() {
		return bare, nil
	}
	store, err := p.schemas(p.Job, f.Registry, readOnly)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	d := &decoded{Source: s, store: store}
	if format := confluent.Format(f.Value); format != confluent.Raw {
		d.values = confluent.NewDecoder(format, store)
	}
	if format := confluent.Format(f.Key); format != confluent.Raw {
		d.keys = confluent.NewDecoder(format, store)
	}
	return d, nil
}

// Read delivers the records of a split, decoded. What cannot be decoded is rejected as it was read.
func (d *decoded) Read(ctx context.Context, s source.Split, to source.Writer) error {
	return d.Source.Read(ctx, s, &decodingWriter{ctx: ctx, to: to, d: d})
}

// Close gives the source and the registry up.
func (d *decoded) Close() error {
	d.store.Close()
	return d.Source.Close()
}

type decodingWriter struct {
	ctx        context.Context
	to         source.Writer
	d          *decoded
	rec        abi.Record
	value, key []byte
	headers    []abi.Header
}

// Write implements source.Writer.
func (w *decodingWriter) Write(r *abi.Record) error {
	w.rec = *r
	var byHeader framing
	w.rec.Headers, w.headers, byHeader = unframed(r.Headers, w.headers, w.d.values != nil, w.d.keys != nil)
	err := decodeInto(w.ctx, w.d.values, &w.value, &w.rec.Value, byHeader.value, "the value")
	if err == nil {
		err = decodeInto(w.ctx, w.d.keys, &w.key, &w.rec.Key, byHeader.key, "the key")
	}
	var bad *confluent.Reject
	if errors.As(err, &bad) {
		return w.to.Reject(r, bad.Code, bad.Reason)
	}
	if err != nil {
		return err
	}
	return w.to.Write(&w.rec)
}

// Reject implements source.Writer.
func (w *decodingWriter) Reject(r *abi.Record, code, reason string) error {
	return w.to.Reject(r, code, reason)
}

// framing is what headers say of the framing of a record.
type framing struct{ value, key []byte }

// unframed takes the headers that hold framing off a record whose value or key is decoded, or encoded anew: they would say of
// it what is no longer so. buf is the memory for what is left.
func unframed(headers, buf []abi.Header, value, key bool) (left, mem []abi.Header, f framing) {
	found := false
	for i := range headers {
		switch name := headers[i].Name; {
		case value && string(name) == confluent.ValueHeader:
			f.value, found = headers[i].Value, true
		case key && string(name) == confluent.KeyHeader:
			f.key, found = headers[i].Value, true
		}
	}
	if !found {
		return headers, buf, f
	}
	buf = buf[:0]
	for i := range headers {
		name := string(headers[i].Name)
		if value && name == confluent.ValueHeader || key && name == confluent.KeyHeader {
			continue
		}
		buf = append(buf, headers[i])
	}
	return buf, buf, f
}

// decodeInto replaces bytes by their JSON. No bytes, as those of a tombstone, stay none.
func decodeInto(ctx context.Context, d *confluent.Decoder, buf, b *[]byte, header []byte, what string) error {
	if d == nil || *b == nil {
		return nil
	}
	out, err := d.AppendJSON(ctx, (*buf)[:0], *b, header)
	var bad *confluent.Reject
	if errors.As(err, &bad) {
		return &confluent.Reject{Code: bad.Code, Reason: what + ": " + bad.Reason}
	}
	if err == nil {
		*buf, *b = out, out
	}
	return err
}

// encoded is a target of topics, some of whose sinks encode what they take.
type encoded struct {
	*kafkasink.Target
	stores map[string]*registry.Store // by connection
	sinks  map[string]*encodedSink
}

// encodedSink is how one sink writes.
type encodedSink struct{ value, key *lazyCodec }

// lazyCodec is a codec whose schema is found when it is first needed: a target that is only looked at needs none.
type lazyCodec struct {
	store   *registry.Store
	format  confluent.Format
	schema  *job.TopicSchema
	pinName string
	place   string

	mu    sync.Mutex
	codec *confluent.Codec
}

// encode lays the formats of the sinks of one connection around their target.
func (p *Program) encode(j *job.Job, t *kafkasink.Target, connection string) (sink.Target, error) {
	e := &encoded{Target: t, stores: map[string]*registry.Store{}, sinks: map[string]*encodedSink{}}
	for i := range j.Sinks {
		k := j.Sinks[i].Kafka
		if k == nil || k.Connection != connection || !k.Formats.Framed() {
			continue
		}
		store := e.stores[k.Formats.Registry]
		if store == nil {
			var err error
			if store, err = p.schemas(j, k.Formats.Registry, false); err != nil {
				return nil, err
			}
			e.stores[k.Formats.Registry] = store
		}
		name := j.Sinks[i].Name
		e.sinks[name] = &encodedSink{
			value: newLazyCodec(store, k.Formats.Value, k.Schema, name, "value"), key: newLazyCodec(store, k.Formats.Key, k.KeySchema, name, "key"),
		}
	}
	if len(e.sinks) == 0 {
		return t, nil
	}
	return e, nil
}

func newLazyCodec(store *registry.Store, format string, s *job.TopicSchema, sinkName, part string) *lazyCodec {
	if s == nil {
		return nil
	}
	h := sha256.New()
	for _, text := range []string{format, s.Subject, strconv.FormatInt(s.Version, 10), s.Text} {
		h.Write([]byte(strconv.Itoa(len(text)) + ":" + text))
	}
	return &lazyCodec{
		store: store, format: confluent.Format(format), schema: s, place: "sink " + sinkName + ", schema of its " + part + "s",
		pinName: sinkName + "-" + part + "-" + hex.EncodeToString(h.Sum(nil)[:8]),
	}
}

// get finds the schema: the one that is kept, else the registry's. keep keeps that from then on: only the owner of the
// target may.
func (l *lazyCodec) get(ctx context.Context, keep bool) (*confluent.Codec, error) {
	if l == nil {
		return nil, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.codec != nil {
		return l.codec, nil
	}
	found, err := l.store.Pinned(ctx, l.pinName, keep, func(ctx context.Context, c *registry.Client) (*confluent.Schema, error) {
		found, err := l.ask(ctx, c)
		if err == nil {
			_, err = l.codecOf(found) // what cannot be written by is not kept
		}
		return found, err
	})
	if f, ok := errors.AsType[*fault.Error](err); ok && f.ErrCode == CodeSchema {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.place, err)
	}
	l.codec, err = l.codecOf(found)
	return l.codec, err
}

func (l *lazyCodec) ask(ctx context.Context, c *registry.Client) (*confluent.Schema, error) {
	if l.schema.Text != "" {
		return c.Lookup(ctx, l.schema.Subject, l.format, l.schema.Text, l.schema.Register)
	}
	return c.BySubject(ctx, l.schema.Subject, int(l.schema.Version))
}

func (l *lazyCodec) codecOf(s *confluent.Schema) (*confluent.Codec, error) {
	codec, err := confluent.NewCodec(s, l.format, l.schema.Message)
	if err != nil {
		return nil, fault.New(CodeSchema, l.place, err, "name a subject, version, message and format that fit each other")
	}
	return codec, nil
}

// Open finds the schemas before it takes the target over: a job that cannot write must not shut out one that can.
func (e *encoded) Open(ctx context.Context, o sink.Owner) (sink.Published, error) {
	for _, s := range e.sinks {
		for _, l := range []*lazyCodec{s.value, s.key} {
			if _, err := l.get(ctx, true); err != nil {
				return sink.Published{}, err
			}
		}
	}
	return e.Target.Open(ctx, o)
}

// Close gives the target and the registries up.
func (e *encoded) Close() error {
	for _, s := range e.stores {
		s.Close()
	}
	return e.Target.Close()
}

// NewLane implements sink.Target.
func (e *encoded) NewLane(name string) (sink.Lane, error) {
	inner, err := e.Target.NewLane(name)
	if s := e.sinks[name]; err == nil && s != nil {
		return &encodingLane{Lane: inner, sink: s}, nil
	}
	return inner, err
}

// Stage hands the target its own lanes.
func (e *encoded) Stage(ctx context.Context, out sink.Output) (sink.Staged, error) {
	sinks := make([]sink.SinkOutput, 0, len(out.Sinks))
	for _, s := range out.Sinks {
		own := sink.SinkOutput{Name: s.Name}
		for _, l := range s.Lanes {
			if wrapped, ok := l.(*encodingLane); ok {
				l = wrapped.Lane
			}
			own.Lanes = append(own.Lanes, l)
		}
		sinks = append(sinks, own)
	}
	out.Sinks = sinks
	return e.Target.Stage(ctx, out)
}

// encodingLane encodes records before the lane of the target takes them.
type encodingLane struct {
	sink.Lane
	sink       *encodedSink
	ready      bool
	value, key *confluent.Encoder
	rec        abi.Record
	vbuf, kbuf []byte
	headers    []abi.Header
}

// Append implements sink.Lane.
func (l *encodingLane) Append(r *abi.Record) error {
	if err := l.prepare(); err != nil {
		return err
	}
	l.rec = *r
	l.rec.Headers, l.headers, _ = unframed(r.Headers, l.headers, l.value != nil, l.key != nil)
	if err := encodeInto(l.value, &l.vbuf, &l.rec.Value, "the value"); err != nil {
		return err
	}
	if err := encodeInto(l.key, &l.kbuf, &l.rec.Key, "the key"); err != nil {
		return err
	}
	return l.Lane.Append(&l.rec)
}

// prepare makes the encoders. After the target was opened, and when a batch is run again, no registry is asked.
func (l *encodingLane) prepare() error {
	if l.ready {
		return nil
	}
	value, err := l.sink.value.get(context.Background(), false)
	if err != nil {
		return err
	}
	key, err := l.sink.key.get(context.Background(), false)
	if err != nil {
		return err
	}
	if value != nil {
		l.value = value.NewEncoder()
	}
	if key != nil {
		l.key = key.NewEncoder()
	}
	l.ready = true
	return nil
}

// encodeInto replaces JSON by what an encoder makes of it. Null stays null: a tombstone.
func encodeInto(e *confluent.Encoder, buf, b *[]byte, what string) error {
	if e == nil || *b == nil {
		return nil
	}
	out, err := e.Append((*buf)[:0], *b)
	if m := (*sink.Misfit)(nil); errors.As(err, &m) && m.Column == "" {
		m.Reason = what + ": " + m.Reason
	}
	if err == nil {
		*buf, *b = out, out
	}
	return err
}
