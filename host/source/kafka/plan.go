package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/source"
)

// maxLooks bounds how often one plan looks at the cluster anew because partitions have gone since.
const maxLooks = 3

// ahead is what one partition holds for the next batch.
type ahead struct {
	partition
	id    string
	known bool // the position before has it
	was   partPos
	start int64 // where the batch begins
	moved bool  // start is not where the batch before ended
	end   logEnd
	take  int64 // offsets that the batch takes
}

func (a *ahead) lag() int64 { return max(0, a.end.offset-a.start) }

// Latest plans on from a position: what the partitions hold by now, shared out within the limit. A job without progress
// that does not start at the beginning gets a plan even where there is nothing to read, so that its start is durable.
func (s *Source) Latest(ctx context.Context, from checkpoint.Position, limit source.Limit) (checkpoint.Position, error) {
	if err := ctx.Err(); err != nil {
		return checkpoint.Position{}, err
	}
	pos, err := parsePosition(from)
	if err != nil {
		return checkpoint.Position{}, err
	}
	if s.stale.Swap(false) {
		s.meta.at, s.floors = time.Time{}, nil
		clear(s.validated)
	} else if parts, ok := s.inMemory(pos, limit); ok {
		return s.planned(from, pos, parts, false)
	}
	parts, lost, err := s.survey(ctx, pos, from.IsZero())
	if err != nil {
		return checkpoint.Position{}, err
	}
	if err := s.pre.follow(parts); err != nil { // the first fetches run while shares are made
		return checkpoint.Position{}, err
	}
	if err := s.share(ctx, parts, limit); err != nil {
		return checkpoint.Position{}, err
	}
	if err := s.pre.follow(parts); err != nil {
		return checkpoint.Position{}, err
	}
	s.doubt(parts)
	return s.planned(from, pos, parts, lost)
}

// planned tells of a plan and writes it as a position.
func (s *Source) planned(from checkpoint.Position, pos position, parts []ahead, lost bool) (checkpoint.Position, error) {
	news := lost || from.IsZero() && s.pins()
	lags := make([]Lag, 0, len(parts))
	for i := range parts {
		a := &parts[i]
		news = news || a.take > 0 || a.known && a.moved
		lags = append(lags, Lag{Topic: a.topic, Partition: a.num, From: a.start, Offset: a.start + a.take, End: a.end.offset})
	}
	s.cfg.Lag(lags)
	at := from
	if news {
		var err error
		if at, err = s.next(pos, parts); err != nil {
			return checkpoint.Position{}, err
		}
	}
	s.plan.at, s.plan.behind = at, behind(parts)
	return at, nil
}

// behind names the partitions that hold more than a plan takes.
func behind(parts []ahead) []string {
	var names []string
	for i := range parts {
		if parts[i].take < parts[i].lag() {
			names = append(names, parts[i].partition.String())
		}
	}
	return names
}

// Behind implements source.Partitioned for the last plan.
func (s *Source) Behind(at checkpoint.Position) (parts []string, known bool) {
	return s.plan.behind, !at.IsZero() && s.plan.at == at
}

// pins reports whether the start that is configured moves with time.
func (s *Source) pins() bool {
	return s.cfg.Start.Latest || s.cfg.Start.TimestampMS != 0 || len(s.cfg.Start.Offsets) > 0
}

// next is the position after the parts are read.
func (s *Source) next(pos position, parts []ahead) (checkpoint.Position, error) {
	out := position{}
	for name, t := range pos {
		if !s.reads(name) { // not asked for any more: its place is kept for the day it is
			for num, at := range t.parts {
				at.start = none
				out.set(partition{name, num}, t.id, at)
			}
		}
	}
	for i := range parts {
		a := &parts[i]
		at := partPos{offset: a.start + a.take, epoch: a.was.epoch, start: none}
		if !a.known || a.moved {
			at.start = a.start
		}
		if a.take > 0 || a.moved || !a.known {
			at.epoch = a.end.epoch
		}
		out.set(a.partition, a.id, at)
	}
	return out.format()
}

// survey looks at what there is: each partition that is read, from where and up to where. lost says that something of the
// position is left out; fresh that the job has no progress.
func (s *Source) survey(ctx context.Context, pos position, fresh bool) (parts []ahead, lost bool, err error) {
	for look := 1; ; look++ {
		topics, err := s.subscribed(ctx, look > 1)
		if err != nil {
			return nil, false, err
		}
		if err := s.demand(topics, pos, fresh); err != nil {
			return nil, false, err
		}
		parts, lost, err := s.follow(pos, topics)
		if err != nil {
			return nil, false, err
		}
		whole, err := s.measure(ctx, parts, fresh)
		if err != nil {
			return nil, false, err
		}
		if whole {
			return parts, lost, nil
		}
		if look == maxLooks {
			return nil, false, stalled("source "+s.cfg.Name, fmt.Errorf("the cluster names partitions and then does not know them, %d times over", look))
		}
	}
}

// follow holds the position against the topics that there are.
func (s *Source) follow(pos position, topics map[string]*topicInfo) (parts []ahead, lost bool, err error) {
	for _, k := range pos.partitions() {
		if !s.reads(k.topic) {
			continue
		}
		t, was := topics[k.topic], pos[k.topic]
		at := was.parts[k.num]
		switch {
		case t == nil:
			err = s.lose(k, "the topic is gone; what came after offset %d and was not read is lost", at.offset)
		case was.id != "" && t.id != "" && was.id != t.id:
			err = s.lose(k, "the topic was deleted and made anew: its id was %s and is %s; what the old one held after offset %d is lost", was.id, t.id, at.offset)
		default:
			if _, ok := t.parts[k.num]; ok {
				continue
			}
			err = s.lose(k, "the partition is gone; what came after offset %d and was not read is lost", at.offset)
		}
		if err != nil {
			return nil, false, err
		}
		lost = true
	}
	for _, k := range all(topics) {
		if s.frozen != nil {
			if _, ok := s.frozen[k]; !ok {
				continue
			}
		}
		a := ahead{partition: k, id: topics[k.topic].id, start: none, was: partPos{epoch: none}}
		if was := pos[k.topic]; was != nil && (was.id == "" || a.id == "" || was.id == a.id) {
			if at, ok := was.parts[k.num]; ok {
				a.known, a.was, a.start = true, at, at.offset
			}
		}
		parts = append(parts, a)
	}
	return parts, lost, nil
}

// lose is what a loss comes to: an error, or a warning where losses are skipped.
func (s *Source) lose(k partition, format string, args ...any) error {
	err := changed(k.String(), format, args...)
	if s.cfg.SkipLost {
		err.WayOut = fromElsewhere
		s.cfg.Warn(err)
		return nil
	}
	return err
}

// measure finds starts and ends, and what of the position's offsets is not in the logs any more. whole is false when a
// partition has gone meanwhile.
func (s *Source) measure(ctx context.Context, parts []ahead, fresh bool) (whole bool, err error) {
	keys := make([]partition, len(parts))
	for i := range parts {
		keys[i] = parts[i].partition
	}
	ends, err := s.offsets(ctx, keys, atEnd)
	if err != nil {
		return false, err
	}
	if len(ends) < len(keys) {
		return false, nil
	}
	floors, err := s.lowest(ctx, keys, parts)
	if err != nil {
		return false, err
	}
	if len(floors) < len(keys) {
		return false, nil
	}
	for i := range parts {
		a := &parts[i]
		a.end = ends[a.partition]
		switch same, err := s.confirm(ctx, a, floors[a.partition]); {
		case err != nil:
			return false, err
		case !same:
			return false, nil
		}
		if err := s.check(ctx, a, floors[a.partition]); err != nil {
			return false, err
		}
	}
	if err := s.begin(ctx, parts, floors, ends, fresh); err != nil {
		return false, err
	}
	for i := range parts {
		if end, ok := s.frozen[parts[i].partition]; ok {
			parts[i].end.offset = min(parts[i].end.offset, max(end, parts[i].start))
		}
	}
	return true, nil
}

// lowest returns where the partitions start: asked anew now and then, and when a partition is new.
func (s *Source) lowest(ctx context.Context, keys []partition, parts []ahead) (map[partition]int64, error) {
	now := s.cfg.Clock()
	age := now.Sub(s.floorsAt)
	fresh := s.floors != nil && age >= 0 && age < s.cfg.Discovery
	for i := range parts {
		_, ok := s.floors[parts[i].partition]
		fresh = fresh && ok && parts[i].known
	}
	if fresh {
		return s.floors, nil
	}
	starts, err := s.offsets(ctx, keys, atStart)
	if err != nil {
		return nil, err
	}
	floors := make(map[partition]int64, len(starts))
	for k, e := range starts {
		floors[k] = e.offset
	}
	s.floors, s.floorsAt = floors, now
	return floors, nil
}

// confirm looks the topic up anew where a log does not reach from what was read: offsets are asked for by name, and may be
// those of another topic than was found when topics were looked up last. It reports whether it is the same.
func (s *Source) confirm(ctx context.Context, a *ahead, floor int64) (same bool, err error) {
	if !a.known || floor <= a.start && a.start <= a.end.offset && s.validAt(a) {
		return true, nil
	}
	return s.same(ctx, a.topic, a.id)
}

// same looks a topic up anew and reports whether it has an id still. One of the two may not be known.
func (s *Source) same(ctx context.Context, name, id string) (bool, error) {
	t, err := s.topic(ctx, name, true)
	if err != nil || t == nil {
		return false, err
	}
	return t.id == id || t.id == "" || id == "", nil
}

// check holds the offset that a partition was read up to against its log.
func (s *Source) check(ctx context.Context, a *ahead, floor int64) error {
	if !a.known {
		return nil
	}
	if a.start < floor {
		if err := s.lose(a.partition, "offsets %d to %d were deleted before they were read; the log begins at %d now", a.start, floor-1, floor); err != nil {
			return err
		}
		a.start, a.moved = floor, true
	}
	if a.end.offset < a.start {
		if err := s.settle(ctx, a); err != nil {
			return err
		}
	}
	if a.end.offset < a.start {
		return s.cut(a, a.end.offset)
	}
	return s.validate(ctx, a, floor)
}

// validate asks, when a partition has another leader than the position was seen with, whether that one's log goes as far.
func (s *Source) validate(ctx context.Context, a *ahead, floor int64) error {
	if a.moved || s.validAt(a) {
		return nil
	}
	end, err := s.epochEnd(ctx, a.partition, a.was.epoch)
	switch {
	case err != nil:
		return err
	case end == none:
		err = s.lose(a.partition, "the log knows nothing of leader epoch %d, in which it was read up to offset %d: it may hold other records there now", a.was.epoch, a.start)
	case end < a.start:
		return s.cut(a, max(end, floor))
	}
	s.validated[a.partition] = a.end.epoch
	return err
}

// validAt reports whether the position is known to be sound in the epoch of the leader.
func (s *Source) validAt(a *ahead) bool {
	if a.was.epoch == none || a.end.epoch == none || a.end.epoch == a.was.epoch {
		return true
	}
	epoch, ok := s.validated[a.partition]
	return ok && epoch == a.end.epoch
}

// settle waits for an end that lies before what was read: a new leader tells an old one for a moment.
func (s *Source) settle(ctx context.Context, a *ahead) error {
	var b backoff
	for a.end.offset < a.start {
		again, err := b.wait(ctx, min(s.cfg.Patience, settlePatience))
		if err != nil {
			return err
		}
		if !again {
			return nil
		}
		ends, err := s.offsets(ctx, []partition{a.partition}, atEnd)
		if err != nil {
			return err
		}
		if e, ok := ends[a.partition]; ok {
			a.end = e
		}
	}
	return nil
}

// cut says that a log was cut back to an offset before the one that was read up to.
func (s *Source) cut(a *ahead, at int64) error {
	err := s.lose(a.partition, "the log was cut at offset %d, and it had been read up to %d: what it held there before is gone, and what it holds there now was not read", at, a.start)
	a.start, a.moved = min(at, a.end.offset), true
	return err
}
