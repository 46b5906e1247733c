package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmill/wasmill/abi"
)

// taker takes the records of a consumer's input in order. The record is the taker's until it returns; split names the
// part of a source it was read from, "" for the output of a stage.
type taker func(entry int, split string, r *abi.Record) error

// feed delivers the input of one consumer in this lane: its `from` entries one after the other, each in its own order.
// The same batch feeds the same records every time it is called.
func (l *lane) feed(ctx context.Context, b *batchRun, inputs []Edge, take taker) error {
	for entry, e := range inputs {
		var err error
		if e.Source >= 0 {
			err = l.feedSource(ctx, b, e.Source, entry, take)
		} else {
			err = l.feedPort(e, entry, take)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// feedStage delivers the input of a stage in this lane.
func (l *lane) feedStage(ctx context.Context, b *batchRun, s *stageLane, take taker) error {
	if s.node.Keyed() {
		return l.feedKeyed(s, take)
	}
	return l.feed(ctx, b, s.node.Inputs, take)
}

func (l *lane) feedPort(e Edge, entry int, take taker) error {
	return l.stages[e.Stage].ports[e.Port].kept.each(func(i int, r *abi.Record) error {
		r.Offset, r.Partition, r.Port = int64(i), int32(l.index), uint16(e.Port)
		return take(entry, "", r)
	})
}

// feedSource reads the lane's splits of a source. Every completed pass must see the same records: a source that does not
// read twice alike would break replay, so it stops the batch here.
func (l *lane) feedSource(ctx context.Context, b *batchRun, src, entry int, take taker) error {
	node := &l.r.g.Sources[src]
	w := &passWriter{l: l, b: b, src: src, entry: entry, take: take, digest: &l.read[src]}
	if l.passes[src] == 0 {
		l.reject[src].reset()
		l.read[src].Reset()
	} else {
		w.digest = new(abi.RecordDigest)
	}
	for _, sp := range b.splits[src][l.index] {
		w.split = sp.Name
		if err := node.Source.Read(ctx, sp, w); err != nil {
			if w.err != nil && errors.Is(err, w.err) {
				return w.err
			}
			return &readError{source: src, err: fmt.Errorf("source %s: %w", node.Name, err)}
		}
	}
	if l.passes[src] > 0 && (w.digest.Count() != l.read[src].Count() || w.digest.Sum() != l.read[src].Sum()) {
		return readDiffers(node.Name)
	}
	l.passes[src]++
	return nil
}

// passWriter is the engine's end of a source's Read: it digests what comes and hands it on.
type passWriter struct {
	l      *lane
	b      *batchRun
	src    int
	entry  int
	split  string
	take   taker
	digest *abi.RecordDigest
	err    error // what it answered last
}

// tooLarge is the word for what a source cuts because it is longer than a record may be.
const tooLarge = "too_large"

// rejectPort stands for "not a record" in the digest of what was read.
const rejectPort = 0xffff

// Write takes one record of a source.
func (w *passWriter) Write(r *abi.Record) error {
	r.Port, r.Kind, r.Index = 0, abi.KindRecord, 0
	r.Flags &= abi.FlagEventTime
	w.digest.Add(r)
	us, flags := r.EventTime, r.Flags
	w.err = w.take(w.entry, w.split, r)
	r.EventTime, r.Flags = us, flags // it is the source's, and a consumer may have found another time in the value
	return w.err
}

// Reject takes what cannot be a record. It is set aside once, in the first pass over the source.
func (w *passWriter) Reject(r *abi.Record, code, reason string) error {
	r.Port = rejectPort
	w.digest.Add(r)
	if w.l.passes[w.src] > 0 {
		return nil
	}
	w.err = w.l.setAside(&w.l.reject[w.src], letter{
		code: CodeReject, word: code, reason: reason, cut: code == tooLarge,
		origin: origin{edge: FromSource(w.src), split: w.split, offset: r.Offset, partition: r.Partition},
	}, r)
	return w.err
}

// readError says which source could not be read.
type readError struct {
	source int
	err    error
}

func (e *readError) Error() string { return e.err.Error() }
func (e *readError) Unwrap() error { return e.err }
