package sandbox

import (
	"bytes"
	"fmt"

	"github.com/wasmill/wasmill/abi"
)

// Levels of a guest's log lines.
const (
	levelInfo  = 1
	levelWarn  = 2
	levelError = 3
)

// bytesALine is for how many bytes of Limits.Log one instance may log a line: what is over either is counted and dropped.
// Empty lines cost something too.
const bytesALine = 64

// guestLog cuts, escapes and rations what a guest says, through log or through standard output and error.
type guestLog struct {
	sink    func(level int, text string)
	most    int    // bytes that may be heard
	last    string // the last line, whether or not it was heard
	partial [2][]byte
	lines   int
	bytes   int
	dropped int
}

// open starts the ration anew and sends lines to sink.
func (g *guestLog) open(sink func(int, string)) {
	*g = guestLog{sink: sink, most: g.most}
}

// spent says whether the ration is used up.
func (g *guestLog) spent() bool { return g.lines*bytesALine >= g.most || g.bytes >= g.most }

// line takes one line of any length.
func (g *guestLog) line(level int, text []byte) {
	if g.spent() {
		g.dropped++
		return
	}
	shown := abi.EscapeText(text, abi.MaxLogLine)
	g.lines++
	g.bytes += len(shown)
	g.last = shown
	if g.sink != nil {
		g.sink(level, shown)
	}
}

// output takes what a guest writes to standard output (1) or error (2) and makes lines of it. Of a line that has no end it
// keeps only as much as will be shown.
func (g *guestLog) output(fd uint32, p []byte) {
	part := &g.partial[fd-1]
	for len(p) > 0 {
		if g.spent() { // many lines may follow, for little fuel
			g.dropped += bytes.Count(p, []byte{'\n'})
			return
		}
		line, rest, ended := bytes.Cut(p, []byte{'\n'})
		room := max(abi.MaxLogLine-len(*part), 0)
		*part = append(*part, line[:min(len(line), room)]...)
		if ended {
			g.end(fd)
		}
		p = rest
	}
}

func (g *guestLog) end(fd uint32) {
	part := &g.partial[fd-1]
	level := levelInfo
	if fd == 2 {
		level = levelWarn
	}
	g.line(level, *part)
	*part = (*part)[:0]
}

// flush ends the lines that are begun.
func (g *guestLog) flush() {
	for i := range g.partial {
		if len(g.partial[i]) > 0 {
			g.end(uint32(i + 1))
		}
	}
}

// close says how much was dropped.
func (g *guestLog) close() {
	g.flush()
	if g.dropped > 0 && g.sink != nil {
		g.sink(levelWarn, fmt.Sprintf("%d more lines of the guest are dropped", g.dropped))
	}
	g.dropped = 0
}
