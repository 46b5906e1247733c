package engine

import (
	"time"

	"github.com/wasmill/wasmill/host/source"
)

// pace fits the size of batches to the load: small while little comes, so that what comes waits for little; large under a
// backlog, but not so large that a batch takes longer than it should. It shapes plans only: what a batch reads is in its
// plan, and a replay asks nobody.
type pace struct {
	most    time.Duration // that a batch should take; 0 leaves the sources' own limits alone
	records int64         // that the next batch may take of each source; 0 no limit
	least   int64         // that a batch may always take, unless it is too large
	bound   int64         // that no batch may take more of, since one was too large; 0 none
}

const (
	// paceBackToBack is how long a batch of a job that runs back to back should take at most: what comes meanwhile waits for it.
	paceBackToBack = 200 * time.Millisecond
	// paceFirst is the first limit of such a job: how dear a record is shows before much is asked for.
	paceFirst = 2000
	// paceLeast is the least a limit comes down to.
	paceLeast = 64
	// paceEnd is where a limit stops growing: no batch is larger.
	paceEnd = 1 << 40
)

// newPace is the pace of a job. With an interval its batches begin large: they are few, and the first has a backlog. Where what has
// come may wait for more, it may as well wait for a batch that takes as long.
func newPace(t Trigger) pace {
	switch {
	case t.AvailableNow:
		return pace{}
	case t.Interval > 0:
		return pace{most: max(t.Interval, t.Gather.Delay), least: t.Gather.Records}
	}
	return pace{most: max(paceBackToBack, t.Gather.Delay), records: paceFirst, least: t.Gather.Records}
}

// limit is what a batch may take of a source that has a limit of its own.
func (p *pace) limit(own source.Limit) source.Limit {
	paced := p.records
	if paced > 0 {
		paced = max(paced, p.least)
	}
	for _, n := range []int64{paced, p.bound} {
		if n > 0 && (own.Records == 0 || own.Records > n) {
			own.Records = n
		}
	}
	return own
}

// ran learns from a batch: of the source that gave most it took so many records, and so long.
func (p *pace) ran(records int64, took time.Duration) {
	switch {
	case p.most == 0 || records == 0:
	case took > p.most:
		p.records = max(int64(float64(records)*float64(p.most)/float64(took)), paceLeast)
	case p.records > 0 && records > p.records/2:
		// The limit held the batch up, or nearly so, and there was time left. It grows by as much as there is room for, at most
		// fourfold.
		room := float64(p.most) / float64(max(took, 1))
		p.records = min(int64(float64(p.records)*min(room, 4)), paceEnd)
	}
}
