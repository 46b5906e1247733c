package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sink"
)

// judged is a target that only says its name and what it promises.
type judged struct {
	sink.Target
	guarantee sink.Guarantee
	volatile  bool
}

func (judged) ID() string { return "out" }
func (j judged) Traits() sink.Traits {
	return sink.Traits{Guarantee: j.guarantee, Volatile: j.volatile}
}

// forgetful is a target whose output may outlive what it knows of it.
type forgetful struct{ judged }

func (forgetful) Forgot(checkpoint.BatchID) error { return nil }

func decided(batch, last checkpoint.BatchID, digest string) *checkpoint.Decision {
	return &checkpoint.Decision{Batch: batch, Targets: map[string]checkpoint.TargetOutcome{"out": {Last: last, Digest: digest}}}
}

// skips are the batches whose output a person said to leave out, each with the decision before it.
type skips map[checkpoint.BatchID]*checkpoint.Decision

func (s skips) Resolution(_ context.Context, id checkpoint.BatchID, _ string) (*checkpoint.ResolutionRecord, error) {
	if _, ok := s[id]; ok {
		return &checkpoint.ResolutionRecord{Action: checkpoint.Skip}, nil
	}
	return nil, nil
}

func (s skips) Decision(_ context.Context, id checkpoint.BatchID) (*checkpoint.Decision, error) {
	return s[id+1], nil
}

// TestCheckTarget: a start goes on from where the checkpoint says the target is, or from one batch before a decision that
// has output for it.
func TestCheckTarget(t *testing.T) {
	none := sink.Published{Batch: checkpoint.NoBatch}
	three, four := sink.Published{Batch: 3, Digest: "c"}, sink.Published{Batch: 4, Digest: "d"}
	for name, c := range map[string]struct {
		guarantee        sink.Guarantee
		published        sink.Published
		decision, before *checkpoint.Decision
		code             string
		skipped          skips
	}{
		"nothing anywhere":                      {published: none},
		"published before any decision":         {published: three, code: CodeTargetAhead},
		"the last decision":                     {published: four, decision: decided(4, 4, "d"), before: decided(3, 3, "c")},
		"one batch behind it":                   {published: three, decision: decided(4, 4, "d"), before: decided(3, 3, "c")},
		"the first decision, not published":     {published: none, decision: decided(0, 0, "a")},
		"two batches behind":                    {published: sink.Published{Batch: 2, Digest: "b"}, decision: decided(4, 4, "d"), before: decided(3, 3, "c"), code: CodeTargetBehind},
		"one behind with another digest":        {published: sink.Published{Batch: 3, Digest: "x"}, decision: decided(4, 4, "d"), before: decided(3, 3, "c"), code: CodeTargetBehind},
		"empty":                                 {published: none, decision: decided(4, 4, "d"), before: decided(3, 3, "c"), code: CodeTargetBehind},
		"ahead":                                 {published: sink.Published{Batch: 5, Digest: "e"}, decision: decided(4, 4, "d"), before: decided(3, 3, "c"), code: CodeTargetAhead},
		"another digest":                        {published: sink.Published{Batch: 4, Digest: "x"}, decision: decided(4, 4, "d"), before: decided(3, 3, "c"), code: CodeTargetDiffers},
		"no output in the last decision":        {published: three, decision: decided(4, 3, "c"), before: decided(3, 3, "c")},
		"behind without output in the last":     {published: sink.Published{Batch: 2, Digest: "b"}, decision: decided(4, 3, "c"), before: decided(3, 2, "b"), code: CodeTargetBehind},
		"undecided, at the decision before":     {published: three, before: decided(3, 3, "c")},
		"undecided, and published all the same": {published: four, before: decided(3, 3, "c"), code: CodeTargetAhead},
		"undecided, behind":                     {published: none, before: decided(3, 3, "c"), code: CodeTargetBehind},
		"the last decision is skipped":          {published: three, decision: decided(4, 4, "d"), before: decided(3, 3, "c"), skipped: skips{4: decided(3, 3, "c")}},
		"skipped, and published":                {published: four, decision: decided(4, 4, "d"), before: decided(3, 3, "c"), skipped: skips{4: decided(3, 3, "c")}},
		"skipped, and behind":                   {published: none, decision: decided(4, 4, "d"), before: decided(3, 3, "c"), skipped: skips{4: decided(3, 3, "c")}, code: CodeTargetBehind},
		"undecided after a skipped one":         {published: three, before: decided(4, 4, "d"), skipped: skips{4: decided(3, 3, "c")}},
		"one after a skipped one to publish":    {published: three, decision: decided(5, 5, "e"), before: decided(4, 4, "d"), skipped: skips{4: decided(3, 3, "c")}},
		"the first is skipped":                  {published: none, decision: decided(0, 0, "a"), skipped: skips{0: nil}},
		"a new target":                          {published: none, decision: &checkpoint.Decision{Batch: 4}, before: decided(3, 3, "c")},
		"one that may repeat":                   {guarantee: sink.AtLeastOnce, published: four, before: decided(3, 3, "c")},
	} {
		t.Run(name, func(t *testing.T) {
			if c.guarantee == "" {
				c.guarantee = sink.ExactlyOnce
			}
			err := CheckTarget(t.Context(), c.skipped, judged{guarantee: c.guarantee}, c.published, c.decision, c.before)
			f, _ := errors.AsType[*fault.Error](err)
			switch {
			case c.code == "" && err != nil || c.code != "" && f == nil:
				t.Fatalf("got %v, want code %q", err, c.code)
			case f == nil:
			case f.ErrCode != c.code || f.Place != "target out" || !strings.Contains(f.WayOut, "`wasmill checkpoint fork --to DIR`"):
				t.Errorf("code %s, place %s, way out %s", f.ErrCode, f.Place, f.WayOut)
			}
		})
	}
}

// TestCheckNoted: what is noted to be published is not published again by a target that could not tell.
func TestCheckNoted(t *testing.T) {
	last, mark := decided(4, 4, "d"), checkpoint.PublishedMark{Batch: 4, Digest: "d"}
	last.Digest = "d"
	for name, c := range map[string]struct {
		traits    sink.Traits
		published checkpoint.BatchID
		mark      checkpoint.PublishedMark
		decision  *checkpoint.Decision
		refused   bool
		skipped   skips
	}{
		"does not know of it":   {sink.Traits{Guarantee: sink.ExactlyOnce, Volatile: true}, 3, mark, last, true, nil},
		"knows of it":           {sink.Traits{Guarantee: sink.ExactlyOnce, Volatile: true}, 4, mark, last, false, nil},
		"was not there":         {sink.Traits{Guarantee: sink.ExactlyOnce, Volatile: true}, 3, checkpoint.PublishedMark{Batch: 3, Digest: "c"}, last, false, nil},
		"another one was there": {sink.Traits{Guarantee: sink.ExactlyOnce, Volatile: true}, 3, checkpoint.PublishedMark{Batch: 4, Digest: "x"}, last, false, nil},
		"nothing is decided":    {sink.Traits{Guarantee: sink.ExactlyOnce, Volatile: true}, 3, mark, nil, false, nil},
		"can tell":              {sink.Traits{Guarantee: sink.ExactlyOnce}, 3, mark, last, false, nil},
		"may repeat":            {sink.Traits{Guarantee: sink.AtLeastOnce, Volatile: true}, 3, mark, last, false, nil},
		"is to be left out":     {sink.Traits{Guarantee: sink.ExactlyOnce, Volatile: true}, 3, mark, last, false, skips{4: decided(3, 3, "c")}},
	} {
		published := sink.Published{Batch: c.published, Digest: map[checkpoint.BatchID]string{3: "c", 4: "d"}[c.published]}
		err := CheckNoted(t.Context(), c.skipped, judged{guarantee: c.traits.Guarantee, volatile: c.traits.Volatile}, published, c.decision, c.mark)
		if f, _ := errors.AsType[*fault.Error](err); (f != nil && f.ErrCode == CodeTargetBehind) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
	err := CheckNoted(t.Context(), skips{}, forgetful{judged{guarantee: sink.ExactlyOnce}}, sink.Published{Batch: 3}, last, mark)
	if f, _ := errors.AsType[*fault.Error](err); f == nil || f.ErrCode != CodeTargetBehind {
		t.Errorf("a durable target that may forget: %v", err)
	}
}

// TestCheckLook: a target that is refused for what it is like is refused for what it has lost, where it has lost something.
func TestCheckLook(t *testing.T) {
	last, mark := decided(4, 4, "d"), map[string]checkpoint.PublishedMark{"out": {Batch: 4, Digest: "d"}}
	last.Digest = "d"
	three, four := sink.Published{Batch: 3, Digest: "c"}, sink.Published{Batch: 4, Digest: "d"}
	refusal := fault.New("sql.column", "table t", errors.New("no column"), "add the column")
	unfit := func(p sink.Published) error {
		return fmt.Errorf("open: %w", &sink.UnfitError{Published: p, Err: refusal})
	}
	for name, c := range map[string]struct {
		guarantee  sink.Guarantee
		published  sink.Published
		refused    error
		marks      map[string]checkpoint.PublishedMark
		code, says string
	}{
		"as it must be":              {published: four},
		"the batch is missing":       {published: three, marks: mark, code: CodeTargetBehind, says: "restored?"},
		"the batch is to publish":    {published: three},
		"refused":                    {refused: refusal, code: "sql.column", says: "no column"},
		"unfit":                      {refused: unfit(four), marks: mark, code: "sql.column", says: "open: table t: no column"},
		"unfit, with one to come":    {refused: unfit(three), code: "sql.column", says: "no column"},
		"unfit, without a noted one": {refused: unfit(three), marks: mark, code: CodeTargetBehind, says: "restored? and table t: no column"},
		"unfit and empty":            {refused: unfit(sink.Published{Batch: checkpoint.NoBatch}), code: CodeTargetBehind, says: "restored? and table t: no column"},
		"unfit and ahead":            {refused: unfit(sink.Published{Batch: 5, Digest: "e"}), code: "sql.column", says: "no column"},
		"unfit, and may repeat":      {guarantee: sink.AtLeastOnce, refused: unfit(three), marks: mark, code: "sql.column", says: "no column"},
	} {
		target := judged{guarantee: cmp.Or(c.guarantee, sink.ExactlyOnce), volatile: true}
		err := CheckLook(t.Context(), skips{}, target, c.published, c.refused, last, decided(3, 3, "c"), c.marks)
		f, _ := errors.AsType[*fault.Error](err)
		switch {
		case c.code == "" && err == nil:
		case f == nil || f.ErrCode != c.code || !strings.Contains(err.Error(), c.says):
			t.Errorf("%s: %v, want %s", name, err, c.code)
		case strings.Contains(c.says, " and ") && !strings.HasSuffix(f.WayOut, "; after that, and not before: add the column"):
			t.Errorf("%s: way out %s", name, f.WayOut)
		}
	}
}

func TestCheckTorn(t *testing.T) {
	torn := &checkpoint.TornError{Batch: 4, File: "commits/4"}
	if err := CheckTorn(judged{}, sink.Published{Batch: 3}, torn); err != nil {
		t.Error(err)
	}
	f, ok := errors.AsType[*fault.Error](CheckTorn(judged{}, sink.Published{Batch: 4}, torn))
	if !ok || f.ErrCode != CodeTornTailVisible || f.Place != "commits/4" {
		t.Errorf("a torn record of a batch that is published: %v", f)
	}
}

// inheritor has a place in which another query has published up to a batch.
type inheritor struct {
	judged
	last   checkpoint.BatchID
	disown string
}

func (i inheritor) PublishedBy(_ context.Context, query string) (sink.Published, string, error) {
	if query != "old" {
		return sink.Published{Batch: checkpoint.NoBatch}, "", nil
	}
	return sink.Published{Batch: i.last}, i.disown, nil
}

// TestCheckOrigin: a fork goes on in a place only from where the forked query has left it.
func TestCheckOrigin(t *testing.T) {
	none := sink.Published{Batch: checkpoint.NoBatch}
	fork := []checkpoint.Origin{{Query: "old", Batch: 3, Last: map[string]checkpoint.BatchID{"out": 2}}}
	second := []checkpoint.Origin{{Query: "fork", Batch: 1}, fork[0]}
	for name, c := range map[string]struct {
		origins   []checkpoint.Origin
		target    sink.Target
		published sink.Published
		wayOut    string // of a refusal
		code      string // target.ahead
	}{
		"no fork":                         {published: none, target: inheritor{last: 9}},
		"the place is empty":              {origins: fork, published: none, target: inheritor{last: checkpoint.NoBatch}},
		"it has what was decided for it":  {origins: fork, published: none, target: inheritor{last: 2}},
		"it lacks what was decided":       {origins: fork, published: none, target: inheritor{last: 1}, code: CodeTargetBehind, wayOut: "start the old job once"},
		"ahead of a fork of a fork":       {origins: second, published: none, target: inheritor{last: 4}, wayOut: "`wasmill checkpoint fork --at 4`"},
		"a fork of a fork":                {origins: second, published: none, target: inheritor{last: 3}},
		"it is where the fork is":         {origins: fork, published: none, target: inheritor{last: 3}},
		"it is ahead":                     {origins: fork, published: none, target: inheritor{last: 4}, wayOut: "`wasmill checkpoint fork --at 4`"},
		"it can be disowned":              {origins: fork, published: none, target: inheritor{last: 9, disown: "say so"}, wayOut: "what batch 4 and later ones brought is out of it: say so"},
		"another query's":                 {origins: []checkpoint.Origin{{Query: "else", Batch: 3}}, published: none, target: inheritor{last: 9}},
		"the fork has been there already": {origins: fork, published: sink.Published{Batch: 1, Digest: "b"}, target: inheritor{last: 9}},
		"it may repeat":                   {origins: fork, published: none, target: inheritor{judged: judged{guarantee: sink.AtLeastOnce}, last: 9}},
		"it cannot tell":                  {origins: fork, published: none, target: judged{guarantee: sink.ExactlyOnce}},
	} {
		t.Run(name, func(t *testing.T) {
			if i, ok := c.target.(inheritor); ok && i.guarantee == "" {
				i.guarantee = sink.ExactlyOnce
				c.target = i
			}
			err := CheckOrigin(t.Context(), c.origins, c.target, c.published)
			f, _ := errors.AsType[*fault.Error](err)
			if c.wayOut == "" && err != nil || c.wayOut != "" && (f == nil || f.ErrCode != cmp.Or(c.code, CodeTargetAhead) || !strings.Contains(f.WayOut, c.wayOut)) {
				t.Errorf("got %v (%+v), want a way out with %q", err, f, c.wayOut)
			}
		})
	}
}
