package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/wasmill/wasmill/host/fault"
)

// screen shows pictures: in place on a terminal, or as a line of a log now and then.
type screen interface {
	show(*picture)
	// keys are what is pressed; nil where nothing can be.
	keys() <-chan byte
	// close gives the terminal back as it was. It may be called again.
	close()
}

// log is a screen without a terminal.
type log struct{ w io.Writer }

func (l log) show(p *picture) { fmt.Fprintln(l.w, plainLine(p)) }

func (l log) keys() <-chan byte { return nil }

func (l log) close() {}

// terminal draws over what it has drawn before, so that the last picture stays when the demo has ended.
type terminal struct {
	out     *os.File
	style   style
	pressed chan byte
	drawn   int // lines
	once    sync.Once
	restore func()
}

// openTerminal takes the terminal: no echo, keys one by one, no cursor. Without a keyboard it only draws.
func openTerminal(in, out *os.File, s style) (*terminal, error) {
	t := &terminal{out: out, style: s, restore: func() {}}
	fd := int(in.Fd())
	if term.IsTerminal(fd) {
		before, err := term.MakeRaw(fd)
		if err != nil {
			return nil, fault.New(CodeTerminal, "the terminal", err, "--plain does without it")
		}
		t.restore = func() { _ = term.Restore(fd, before) }
		t.pressed = make(chan byte, 16)
		go t.read(in)
	}
	_, _ = io.WriteString(out, "\x1b[?25l")
	return t, nil
}

// read hands on keys until there are none. Nothing waits for it: a read of a terminal cannot be called off.
func (t *terminal) read(in io.Reader) {
	defer close(t.pressed)
	b := make([]byte, 1)
	for {
		if n, err := in.Read(b); err != nil || n == 0 {
			return
		}
		t.pressed <- b[0]
	}
}

func (t *terminal) keys() <-chan byte { return t.pressed }

func (t *terminal) show(p *picture) {
	width, height, err := term.GetSize(int(t.out.Fd()))
	if err != nil || width <= 0 {
		width, height = 80, 24
	}
	p.keys = t.pressed != nil
	lines := draw(p, width, height, t.style)
	var b strings.Builder
	t.home(&b)
	for _, l := range lines {
		b.WriteString(l + "\x1b[K\r\n")
	}
	b.WriteString("\x1b[J")
	t.drawn = len(lines)
	_, _ = io.WriteString(t.out, b.String())
}

// home goes back to where the picture begins.
func (t *terminal) home(b *strings.Builder) {
	if t.drawn > 0 {
		fmt.Fprintf(b, "\r\x1b[%dA", t.drawn)
	}
}

func (t *terminal) close() {
	t.once.Do(func() {
		_, _ = io.WriteString(t.out, "\x1b[?25h")
		t.restore()
	})
}
