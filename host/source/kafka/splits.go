package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/source"
)

// part is a range of one partition: From up to and without To. It is the Detail of a split.
type part struct {
	Topic     string `json:"topic"`
	ID        string `json:"id,omitempty"`
	Partition int32  `json:"partition"`
	From      int64  `json:"from"`
	To        int64  `json:"to"`
	// Epoch is the leader epoch in which To was an offset of the log, or none.
	Epoch int32 `json:"epoch"`
}

func (p *part) key() partition { return partition{p.Topic, p.Partition} }

// Splits cuts a range into one split a partition, by topic and partition. Size is in offsets.
func (s *Source) Splits(_ context.Context, r source.Range) ([]source.Split, error) {
	parts, err := parts(r)
	if err != nil {
		return nil, err
	}
	out := make([]source.Split, 0, len(parts))
	for i := range parts {
		detail, err := json.Marshal(&parts[i])
		if err != nil {
			return nil, fmt.Errorf("split: %w", err)
		}
		out = append(out, source.Split{Name: parts[i].key().String(), Size: parts[i].To - parts[i].From, Detail: detail})
	}
	return out, nil
}

func parts(r source.Range) ([]part, error) {
	if r.From == r.To {
		return nil, nil
	}
	from, err := parsePosition(r.From)
	if err != nil {
		return nil, err
	}
	to, err := parsePosition(r.To)
	if err != nil {
		return nil, err
	}
	var out []part
	for _, k := range to.partitions() {
		p, err := between(k, from, to, r.To)
		if err != nil {
			return nil, err
		}
		if p.From < p.To {
			out = append(out, p)
		}
	}
	return out, nil
}

// between is what lies between two positions of a partition that the second knows.
func between(k partition, from, to position, text checkpoint.Position) (part, error) {
	end := to[k.topic].parts[k.num]
	p := part{Topic: k.topic, ID: to[k.topic].id, Partition: k.num, From: end.start, To: end.offset, Epoch: end.epoch}
	if p.From == none {
		begin, ok := from.at(k)
		if !ok {
			return part{}, badPosition(text.Line, fmt.Errorf("nothing says where %s begins in this batch; one that Spark planned is for Spark to finish", k))
		}
		p.From = begin.offset
		if id := from[k.topic].id; id != "" && p.ID != "" && id != p.ID {
			return part{}, badPosition(text.Extra, fmt.Errorf("topic %s is another one at the end of the range", k.topic))
		}
	}
	if p.To < p.From {
		return part{}, badPosition(text.Line, errors.New("the range ends before it begins"))
	}
	return p, nil
}

// Measure counts the offsets of a range. Control records, aborted ones and gaps count as records: only
// reading tells.
func (s *Source) Measure(ctx context.Context, r source.Range) (source.Extent, error) {
	parts, err := parts(r)
	if err != nil {
		return source.Extent{}, err
	}
	x := source.Extent{Offsets: true}
	for i := range parts {
		x.Records += parts[i].To - parts[i].From
	}
	return x, ctx.Err()
}

var _ source.Measurer = (*Source)(nil)
