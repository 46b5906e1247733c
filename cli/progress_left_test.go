package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/source"
)

// TestSummaryOfWhatIsLeftOut names the first files, and counts the others.
func TestSummaryOfWhatIsLeftOut(t *testing.T) {
	var out bytes.Buffer
	p := &lineProgress{w: &out, now: func() time.Time { return time.Unix(0, 0) }}
	p.start("")
	p.batch(engine.BatchStats{})
	r := &running{progress: p}
	for i := range maxLeftOut + 2 {
		r.leftOut(&source.LeftOutError{Split: fmt.Sprintf("in/%d\x1b", i), Records: 3, Bytes: 40, Unit: "line"})
	}
	p.close(nil)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != maxLeftOut+2 || lines[1] != `LEFT OUT of in/0\x1b: 3 lines, 40 bytes` || lines[maxLeftOut+1] != "LEFT OUT 2 times more, which the log names" {
		t.Errorf("%q", lines)
	}
	(&running{progress: noProgress{}}).leftOut(&source.LeftOutError{})
}
