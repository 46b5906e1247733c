package checkpoint

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestSupersede(t *testing.T) {
	for _, tc := range []struct {
		name     string
		decided  bool
		damage   string // file to tear
		why      Reason
		left     string // names in offsets and commits afterwards, crc files included
		wantTail string
	}{
		{"torn plan", false, "offsets/2", Torn, "0 1 .2.torn-A | 0 1", "plan 1 decided"},
		{"torn decision", true, "commits/2", Torn, ".2.crc 0 1 2 | 0 1 .2.torn-A", "plan 2"},
		{"amended", false, "", Amended, "0 1 .2.amended-A | 0 1", "plan 1 decided"},
		{"undone", true, "", Undone, ".2.crc 0 1 2 | 0 1 .2.undone-0badcafe", "plan 2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f, files := memory()
			l := open(t, files, "c")
			batches(t, l, 0, 1)
			must(t, l.WritePlan(t.Context(), plan(2)))
			put(t, files, "c/offsets/.2.crc", "crc")
			if tc.decided {
				must(t, l.WriteDecision(t.Context(), decision(2)))
				put(t, files, "c/commits/.2.crc", "crc")
			}
			if tc.damage != "" {
				put(t, files, "c/"+tc.damage, read(t, files, "c/"+tc.damage)[:20])
			}
			must(t, l.Close())
			l = open(t, files, "c")
			_, _, err := l.Tail(t.Context())
			if torn := (*TornError)(nil); tc.damage == "" && err != nil || tc.damage != "" && (!errors.As(err, &torn) || torn.Batch != 2 || torn.File != tc.damage) {
				t.Fatalf("tail: %v", err)
			}
			must(t, l.Supersede(t.Context(), 2, tc.why))
			left := fields(list(t, files, "c/offsets")) + " | " + fields(list(t, files, "c/commits"))
			if left != tc.left {
				t.Errorf("left %s, want %s", left, tc.left)
			}
			if got := tailWords(l.Tail(t.Context())); got != tc.wantTail {
				t.Errorf("tail: %s, want %s", got, tc.wantTail)
			}
			after := f.Crash(nil, 0).Process()
			if got := tailWords(open(t, after, "c").Tail(t.Context())); got != tc.wantTail {
				t.Errorf("tail after a power cut: %s, want %s", got, tc.wantTail)
			}
			again := l.Supersede(t.Context(), 2, tc.why)
			if again == nil {
				t.Error("superseded twice")
			}
			if tc.wantTail == "plan 2" {
				must(t, l.WriteDecision(t.Context(), decision(2)))
			} else {
				must(t, l.WritePlan(t.Context(), plan(2)))
			}
		})
	}
}

// fields sorts the superseded records last and hides random attempts.
func fields(names string) string {
	var plain, aside []string
	for _, n := range strings.Fields(names) {
		base, attempt, found := strings.Cut(n, "-")
		if found && attempt != "0badcafe" {
			n = base + "-A"
		}
		if found {
			aside = append(aside, n)
		} else {
			plain = append(plain, n)
		}
	}
	return strings.Join(append(plain, aside...), " ")
}

func tailWords(p *Plan, d *Decision, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case p == nil:
		return "none"
	case d == nil:
		return fmt.Sprintf("plan %d", p.Batch)
	}
	return fmt.Sprintf("plan %d decided", p.Batch)
}

func TestSupersedeRefusesWhatDoesNotFit(t *testing.T) {
	_, files := memory()
	l := open(t, files, "c")
	batches(t, l, 0, 1)
	for _, why := range []Reason{Torn, Amended} {
		wantCode(t, string(why), l.Supersede(t.Context(), 1, why), CodeInvalid, "batch 1")
	}
	wantCode(t, "an earlier batch", l.Supersede(t.Context(), 0, Undone), CodeInvalid, "batch 0")
	must(t, l.WritePlan(t.Context(), plan(2)))
	wantCode(t, "no decision", l.Supersede(t.Context(), 2, Undone), CodeInvalid, "batch 2")
}

// A torn tail is told together with the tail without it.
func TestTailWithoutTheTornRecord(t *testing.T) {
	_, files := memory()
	l := open(t, files, "c")
	batches(t, l, 0, 1)
	must(t, l.WritePlan(t.Context(), plan(2)))
	for _, damage := range []string{"", "v1", "v1\n{\"batchWatermarkMs\"", "\x00\x00\x00\x00"} {
		put(t, files, "c/offsets/2", damage)
		p, d, err := l.Tail(t.Context())
		wantCode(t, "tail", err, CodeTorn, "offsets/2")
		if tailWords(p, d, nil) != "plan 1 decided" {
			t.Errorf("%q: %s", damage, tailWords(p, d, nil))
		}
	}
	put(t, files, "c/commits/2", "v1\n{}")
	_, _, err := l.Tail(t.Context())
	wantCode(t, "a torn plan with a decision", err, CodeUnreadable, "offsets/2")
}
