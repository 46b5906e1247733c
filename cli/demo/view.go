package demo

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// picture is what there is to see at one moment.
type picture struct {
	elapsed time.Duration
	total   int64 // orders to be made
	rate    int64
	broker  string
	dir     string
	rows    []row
	// history is how many records a second came out of the transform, the newest last.
	history []float64
	kills   int
	first   []time.Duration // from kill -9 to the first batch published after it
	phase   string
	note    string // what just happened
	keys    bool
}

// row is one engine.
type row struct {
	job       string
	path      string // from where to where
	records   int64  // committed by it
	perSecond float64
	lag       int64 // records not yet processed, -1 for a job that reads no topic
	batches   int64
	last      time.Duration // what the last batch took
	kills     int
	state     string
	down      bool
}

// style is what the terminal can show.
type style struct{ colour, unicode bool }

const (
	bold   = "\x1b[1m"
	faint  = "\x1b[2m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	normal = "\x1b[0m"
)

func (s style) paint(how, text string) string {
	if !s.colour || how == "" || text == "" {
		return text
	}
	return how + text + normal
}

// Widths of screens: with room for every column, for all but the first, and the least that is drawn for.
const (
	wideEnough = 116
	usual      = 78
	leastWidth = 20
)

// line is a line of text with what it is painted in.
type line struct {
	text, how string
}

// draw makes the picture fit a screen: lines without line ends, none as wide as the screen.
func draw(p *picture, width, height int, s style) []string {
	width = max(width, leastWidth)
	all := []line{
		{fmt.Sprintf("wasmill demo  %5.1f s   %s of %s orders, %s a second", p.elapsed.Seconds(), thousands(made(p)), thousands(p.total), thousands(p.rate)), bold},
		{way(width), faint},
		{},
		{header(width), faint},
	}
	for i := range p.rows {
		how := ""
		if p.rows[i].down {
			how = red
		}
		all = append(all, line{p.rows[i].text(width), how})
	}
	all = append(all, line{}, line{"converted/s  " + sparkline(p.history, width-14, s.unicode), green}, line{killText(p), ""}, line{p.note, faint}, line{p.phase, bold})
	if p.keys {
		all = append(all, line{"k kill -9 all engines   1 2 3 kill one   q finish and prove   ctrl-C stop", ""})
	}
	all = append(all, line{"broker " + p.broker + "   files " + p.dir, faint})
	if drop := len(all) - max(height-1, 1); drop > 0 && height > 0 {
		all = squeeze(all, drop)
	}
	out := make([]string, len(all))
	for i, l := range all {
		out[i] = s.paint(l.how, cut(l.text, width-1))
	}
	return out
}

// squeeze leaves lines out: first empty ones, then from the end.
func squeeze(all []line, drop int) []line {
	var out []line
	for _, l := range all {
		if l.text == "" && drop > 0 {
			drop--
			continue
		}
		out = append(out, l)
	}
	return out[:max(1, len(out)-drop)]
}

// made is how many orders are committed to the first topic.
func made(p *picture) int64 {
	if len(p.rows) == 0 {
		return 0
	}
	return p.rows[0].records
}

func way(width int) string {
	if width < wideEnough {
		return "generator -> topic -> transform (wasm) -> topic -> Parquet, exactly once"
	}
	return "generator -> topic orders -> transform convert (wasm) -> topic converted -> Parquet, exactly once"
}

func header(width int) string {
	switch {
	case width < usual:
		return "engine      records      /s     lag  state"
	case width < wideEnough:
		return "engine      records      /s     lag  batches     last  kill -9  state"
	}
	return "engine   from where to where         records        /s       lag   batches      last  kill -9  state"
}

func (r *row) text(width int) string {
	lag := "-"
	if r.lag >= 0 {
		lag = thousands(r.lag)
	}
	records, perSecond, last := thousands(r.records), thousands(int64(r.perSecond)), r.last.Round(100*time.Microsecond)
	switch {
	case width < usual:
		return fmt.Sprintf("%-8s %10s %7s %7s  %s", r.job, records, perSecond, lag, r.state)
	case width < wideEnough:
		return fmt.Sprintf("%-8s %10s %7s %7s %8s %8s %8d  %s", r.job, records, perSecond, lag, thousands(r.batches), last, r.kills, r.state)
	}
	return fmt.Sprintf("%-8s %-22s %12s %9s %9s %9s %9s %8d  %s", r.job, r.path, records, perSecond, lag, thousands(r.batches), last, r.kills, r.state)
}

func killText(p *picture) string {
	text := fmt.Sprintf("kills %d", p.kills)
	if n := len(p.first); n > 0 {
		text += fmt.Sprintf("   first output after kill -9: %s s (%s)", seconds(p.first[n-1]), spread(p.first))
	}
	return text
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f", d.Seconds()) }

// spread says between what all of them lie.
func spread(all []time.Duration) string {
	least, most := all[0], all[0]
	for _, d := range all {
		least, most = min(least, d), max(most, d)
	}
	return fmt.Sprintf("%s to %s s, %d in all", seconds(least), seconds(most), len(all))
}

// sparkline draws numbers as a row of columns.
func sparkline(values []float64, width int, unicode bool) string {
	levels := []rune(" .:-=+*#")
	if unicode {
		levels = []rune(" ▁▂▃▄▅▆▇█")
	}
	if n := len(values) - max(width, 0); n > 0 {
		values = values[n:]
	}
	most := 0.0
	for _, v := range values {
		most = max(most, v)
	}
	var b strings.Builder
	for _, v := range values {
		level := 0
		if v > 0 {
			level = 1 + int(v/most*float64(len(levels)-2))
		}
		b.WriteRune(levels[level])
	}
	return b.String()
}

// cut shortens a text to so many characters. All that is drawn is one column wide.
func cut(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:max(width, 0)])
}

// plainLine is the picture as one line of a log.
func plainLine(p *picture) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%5.1f s ", p.elapsed.Seconds())
	for i := range p.rows {
		r := &p.rows[i]
		fmt.Fprintf(&b, "  %s %s (%s/s", r.job, thousands(r.records), thousands(int64(r.perSecond)))
		if r.lag >= 0 {
			fmt.Fprintf(&b, ", lag %s", thousands(r.lag))
		}
		fmt.Fprintf(&b, ", batch %s)", thousands(r.batches))
	}
	fmt.Fprintf(&b, "  kills %d", p.kills)
	if p.phase != "" {
		b.WriteString("  " + p.phase)
	}
	return b.String()
}
