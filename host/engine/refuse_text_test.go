package engine

import (
	"testing"

	"github.com/wasmill/wasmill/host/sink"
)

// TestSettingAside: what is said of refused rows names all sinks that refuse some, and what the policy makes of them.
func TestSettingAside(t *testing.T) {
	for _, c := range []struct {
		policy Policy
		rows   []sink.Refusal
		want   string
	}{
		{DeadLetter, []sink.Refusal{{Sink: "a"}, {Sink: "a"}}, "set aside 2 rows of batch 7 that a refuses"},
		{DeadLetter, []sink.Refusal{{Sink: "b"}, {Sink: "a"}, {Sink: "b"}}, "set aside 3 rows of batch 7 that b, a refuse"},
		{Skip, []sink.Refusal{{Sink: "a"}}, "leave out 1 rows of batch 7 that a refuses"},
	} {
		e := &Engine{cfg: Config{Errors: ErrorPolicy{Policy: c.policy}}}
		if got := e.settingAside(7, c.rows); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
