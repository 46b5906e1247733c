package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// printJSON writes a value as indented JSON.
func (e *Env) printJSON(v any) error {
	enc := json.NewEncoder(e.Stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// page collects what a command prints as text: lines, and tables whose columns line up.
type page struct {
	b   strings.Builder
	tab *tabwriter.Writer
}

// line adds a line of text.
func (p *page) line(format string, args ...any) {
	p.flush()
	fmt.Fprintf(&p.b, format+"\n", args...)
}

// row adds a row to the table at the end of the page, which begins with it where there is none.
func (p *page) row(cells ...any) {
	if p.tab == nil {
		p.tab = tabwriter.NewWriter(&p.b, 0, 0, 2, ' ', 0)
	}
	for i, c := range cells {
		if i > 0 {
			fmt.Fprint(p.tab, "\t")
		}
		fmt.Fprint(p.tab, strings.NewReplacer("\t", " ", "\n", " ").Replace(fmt.Sprint(c)))
	}
	fmt.Fprintln(p.tab)
}

func (p *page) flush() {
	if p.tab != nil {
		_ = p.tab.Flush() // a strings.Builder takes everything
		p.tab = nil
	}
}

// print writes the page, without what could steer a terminal and without blanks at the ends of lines.
func (p *page) print(w io.Writer) error {
	p.flush()
	var out strings.Builder
	for l := range strings.Lines(p.b.String()) {
		out.WriteString(strings.TrimRight(l, " \n") + "\n")
	}
	_, err := io.WriteString(w, printable(out.String()))
	return err
}

// plural is a count with its noun.
func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return thousands(n) + " " + noun + "s"
}

// sortedText lists names in order.
func sortedText(names []string) string {
	slices.Sort(names)
	return strings.Join(names, ", ")
}
