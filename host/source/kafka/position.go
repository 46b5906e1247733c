package kafka

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
)

// positionVersion is the version of Extra.
const positionVersion = 1

// none stands for an offset or an epoch that is not known.
const none = -1

// partPos is where one partition stands.
type partPos struct {
	offset int64 // of the next record
	epoch  int32 // leader epoch in which offset was an offset of the log, or none
	start  int64 // where the batch that ends here begins, when that is not where the one before ended; or none
}

// topicPos is where the partitions of one topic stand.
type topicPos struct {
	id    string // 32 hex digits, "" not known
	parts map[int32]partPos
}

// position is a checkpoint.Position in parts. Line is Spark's: {"topic":{"0":12}}, the offset after the last that is read.
type position map[string]*topicPos

func (p position) at(k partition) (partPos, bool) {
	t := p[k.topic]
	if t == nil {
		return partPos{}, false
	}
	at, ok := t.parts[k.num]
	return at, ok
}

func (p position) set(k partition, id string, at partPos) {
	t := p[k.topic]
	if t == nil {
		t = &topicPos{parts: map[int32]partPos{}}
		p[k.topic] = t
	}
	t.id = id
	t.parts[k.num] = at
}

// partitions lists what the position knows, in order.
func (p position) partitions() []partition {
	var out []partition
	for name, t := range p {
		for num := range t.parts {
			out = append(out, partition{name, num})
		}
	}
	slices.SortFunc(out, comparePartitions)
	return out
}

type extra struct {
	V      int                   `json:"v"`
	Topics map[string]extraTopic `json:"topics,omitempty"`
}

type extraTopic struct {
	ID     string           `json:"id,omitempty"`
	Epochs map[string]int64 `json:"epochs,omitempty"`
	Starts map[string]int64 `json:"starts,omitempty"`
}

// format writes a position. Equal positions give equal text: encoding/json sorts keys.
func (p position) format() (checkpoint.Position, error) {
	line := map[string]map[string]int64{}
	x := extra{V: positionVersion, Topics: map[string]extraTopic{}}
	for name, t := range p {
		offsets := map[string]int64{}
		et := extraTopic{ID: t.id, Epochs: map[string]int64{}, Starts: map[string]int64{}}
		for num, at := range t.parts {
			key := strconv.Itoa(int(num))
			offsets[key] = at.offset
			if at.epoch != none {
				et.Epochs[key] = int64(at.epoch)
			}
			if at.start != none {
				et.Starts[key] = at.start
			}
		}
		line[name], x.Topics[name] = offsets, et
	}
	l, err := json.Marshal(line)
	if err != nil {
		return checkpoint.Position{}, fmt.Errorf("position: %w", err)
	}
	e, err := json.Marshal(x)
	if err != nil {
		return checkpoint.Position{}, fmt.Errorf("position: %w", err)
	}
	return checkpoint.Position{Line: string(l), Extra: string(e)}, nil
}

// parsePosition reads what format wrote, and Spark's own lines, which have no extra.
func parsePosition(p checkpoint.Position) (position, error) {
	out := position{}
	if p.IsZero() {
		return out, nil
	}
	var line map[string]map[string]int64
	if err := json.Unmarshal([]byte(p.Line), &line); err != nil {
		return nil, badPosition(p.Line, err)
	}
	for topic, offsets := range line {
		for key, offset := range offsets {
			num, err := partitionNumber(key)
			if err != nil {
				return nil, badPosition(p.Line, err)
			}
			if offset < 0 {
				return nil, badPosition(p.Line, errors.New("an offset is negative"))
			}
			out.set(partition{topic, num}, "", partPos{offset: offset, epoch: none, start: none})
		}
	}
	if p.Extra == "" {
		return out, nil
	}
	return out, out.extend(p.Extra)
}

func partitionNumber(s string) (int32, error) {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != s {
		return 0, fmt.Errorf("%.50q is no partition", s)
	}
	return int32(n), nil
}

// extend adds to a position what Spark's line cannot hold.
func (p position) extend(text string) error {
	var v struct{ V int }
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return badPosition(text, err)
	}
	if v.V > positionVersion {
		return fault.New(CodeVersion, "", fmt.Errorf("the position of a kafka source has version %d, this program knows %d", v.V, positionVersion),
			"go on with the newer version of Wasmill that wrote it")
	}
	var x extra
	if err := json.Unmarshal([]byte(text), &x); err != nil {
		return badPosition(text, err)
	}
	for name, et := range x.Topics {
		t := p[name]
		if t == nil {
			return badPosition(text, fmt.Errorf("topic %.200q has no offsets", name))
		}
		if b, err := hex.DecodeString(et.ID); err != nil || len(b) != 0 && len(b) != 16 {
			return badPosition(text, fmt.Errorf("%.50q is no topic id", et.ID))
		}
		t.id = et.ID
		if err := t.extend(et); err != nil {
			return badPosition(text, err)
		}
	}
	return nil
}

func (t *topicPos) extend(et extraTopic) error {
	for key, epoch := range et.Epochs {
		at, num, err := t.known(key)
		if err != nil {
			return err
		}
		if epoch < 0 || epoch > math.MaxInt32 {
			return fmt.Errorf("%d is no leader epoch", epoch)
		}
		at.epoch = int32(epoch)
		t.parts[num] = at
	}
	for key, start := range et.Starts {
		at, num, err := t.known(key)
		if err != nil {
			return err
		}
		if start < 0 || start > at.offset {
			return fmt.Errorf("a range from %d to %d", start, at.offset)
		}
		at.start = start
		t.parts[num] = at
	}
	return nil
}

func (t *topicPos) known(key string) (partPos, int32, error) {
	num, err := partitionNumber(key)
	if err != nil {
		return partPos{}, 0, err
	}
	at, ok := t.parts[num]
	if !ok {
		return partPos{}, 0, fmt.Errorf("partition %d has no offset", num)
	}
	return at, num, nil
}
