package cli

import "strings"

// targetRows say which sinks the next start refuses, and of which nothing is known.
func (s *planShown) targetRows(p *page) {
	if len(s.Findings) > 0 {
		p.line("THE NEXT START REFUSES")
		findingRows(p, s.Findings)
		p.line("")
	}
	if len(s.Unseen) > 0 {
		p.line("AWAY, so nothing is known of what is there")
		findingRows(p, s.Unseen)
		p.line("")
	}
}

// sharedRows name the tables in which sinks may write over each other's rows.
func (s *planShown) sharedRows(p *page) {
	for _, t := range s.Shared {
		p.line("SEVERAL SINKS WRITE TO ONE TABLE, %s of %s: %s. They do so one after the other in each batch, in this order; of rows with one key the last stands, and a row that is only added is refused where its key is there",
			t.Table, t.Connection, strings.Join(t.Sinks, ", "))
	}
	if len(s.Shared) > 0 {
		p.line("")
	}
}
