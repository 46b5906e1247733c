package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/wasmill/wasmill/host/fault"
)

// settlePatience is how long an end of a log that lies before what was read may be an error of the moment.
const settlePatience = 5 * time.Second

// CodeStart is the code of a fault about where to start from.
const CodeStart = "kafka.start"

// begin finds where partitions begin that the position does not know. When the job has no progress the configured start
// says so; a partition that comes later begins at its start.
func (s *Source) begin(ctx context.Context, parts []ahead, floors map[partition]int64, ends map[partition]logEnd, fresh bool) error {
	known := map[string]bool{}
	for i := range parts {
		if parts[i].known {
			known[parts[i].topic] = true
		}
	}
	var at map[partition]logEnd
	for i := range parts {
		a := &parts[i]
		floor, end := floors[a.partition], ends[a.partition].offset
		if a.known {
			continue
		}
		if !fresh {
			a.start = floor
			if known[a.topic] && floor > 0 {
				if err := s.lose(a.partition, "the partition is new and its log begins at offset %d: what lay before was deleted before it was read", floor); err != nil {
					return err
				}
			}
			continue
		}
		if begun, ok := s.begun[a.partition]; ok {
			a.start = min(max(begun, floor), end)
			continue
		}
		if at == nil && s.cfg.Start.TimestampMS != 0 {
			var err error
			if at, err = s.offsets(ctx, unknownOf(parts), s.cfg.Start.TimestampMS); err != nil {
				return err
			}
		}
		start, err := s.first(a, floor, end, at)
		if err != nil {
			return err
		}
		a.start, s.begun[a.partition] = start, start
	}
	return nil
}

func unknownOf(parts []ahead) []partition {
	var out []partition
	for i := range parts {
		if !parts[i].known {
			out = append(out, parts[i].partition)
		}
	}
	return out
}

// first is the configured start of a partition whose log reaches from floor to end.
func (s *Source) first(a *ahead, floor, end int64, at map[partition]logEnd) (int64, error) {
	start := &s.cfg.Start
	if start.Latest {
		return end, nil
	}
	if start.TimestampMS != 0 {
		if e := at[a.partition]; e.offset >= 0 {
			return min(max(e.offset, floor), end), nil
		}
		return end, nil
	}
	off, ok := start.Offsets[a.topic][a.num]
	switch {
	case !ok || off == atStart:
		return floor, nil
	case off == atEnd:
		return end, nil
	case off < floor || off > end:
		return 0, fault.New(CodeStart, a.String(), outside{off, floor, end}, "mend `from` of the source in the job file")
	}
	return off, nil
}

type outside struct{ off, floor, end int64 }

func (o outside) Error() string {
	return fmt.Sprintf("the source is to start at offset %d, and the log reaches from %d to %d", o.off, o.floor, o.end)
}
