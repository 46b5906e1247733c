package job

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Codes of the mistakes in a job file. They are stable.
const (
	CodeYAML        = "job.yaml"        // not YAML, or YAML that job files do not use
	CodeVersion     = "job.version"     // another apiVersion or kind
	CodeUnknown     = "job.unknown"     // a field that does not exist
	CodeMissing     = "job.missing"     // a field that must be there
	CodeType        = "job.type"        // a list where a text is expected, and so on
	CodeValue       = "job.value"       // a text that is none of the allowed ones, or malformed
	CodeRange       = "job.range"       // a number, duration or size out of bounds
	CodeDuplicate   = "job.duplicate"   // the same name, field or entry twice
	CodeReference   = "job.reference"   // a name that nothing has
	CodeCycle       = "job.cycle"       // transforms that feed each other
	CodeConflict    = "job.conflict"    // fields or paths that exclude each other
	CodeEnv         = "job.env"         // a variable or file that cannot be had
	CodeUnsupported = "job.unsupported" // known, but not available in this version
)

// maxMistakes bounds the list: what follows the first hundred is mostly their echo.
const maxMistakes = 100

// Mistake is one thing wrong with a job file.
type Mistake struct {
	Pos
	Path       string // "spec.sources[0].files.path"; "" when the text is not even YAML
	Code       string
	Message    string // what is wrong and what is allowed
	Suggestion string // the likely intention: "format"; "" when there is none
}

// Text returns the mistake in one line without its place.
func (m Mistake) Text() string {
	var b strings.Builder
	if m.Path != "" {
		b.WriteString(m.Path + ": ")
	}
	b.WriteString(m.Message)
	if m.Suggestion != "" {
		b.WriteString("; did you mean " + m.Suggestion + "?")
	}
	return b.String()
}

// Errors is everything that is wrong with a job file, in the order of the file. It is never empty.
type Errors struct {
	File string
	List []Mistake
	// More counts the mistakes that were left out of List.
	More int
	// WayOut takes the place of the usual one when it is given.
	WayOut string
}

// Error prints one mistake a line, each as file:line:column: text.
func (e *Errors) Error() string {
	var b strings.Builder
	for i, m := range e.List {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(e.File + ":" + strconv.Itoa(m.Line) + ":" + strconv.Itoa(m.Column) + ": " + m.Text())
	}
	if e.More > 0 {
		b.WriteString("\n" + e.File + ": " + strconv.Itoa(e.More) + " more mistakes are not shown")
	}
	return b.String()
}

// Code returns the code that all mistakes share, else "job.invalid".
func (e *Errors) Code() string {
	for _, m := range e.List {
		if m.Code != e.List[0].Code {
			return "job.invalid"
		}
	}
	return e.List[0].Code
}

// Hint returns the way out.
func (e *Errors) Hint() string {
	if e.WayOut != "" {
		return e.WayOut
	}
	if e.Unsupported() {
		return "remove these parts, or use a version of wasmill that has them"
	}
	return "correct the job file; `wasmill init` writes one to start from, with a schema for editors"
}

// Unsupported reports whether the file is right and only asks for what this version cannot do yet.
func (e *Errors) Unsupported() bool {
	return !slices.ContainsFunc(e.List, func(m Mistake) bool { return m.Code != CodeUnsupported })
}

// mistakes collects while a file is read.
type mistakes struct {
	found []Mistake
	more  int
}

func (c *mistakes) add(m Mistake) {
	if len(c.found) == maxMistakes {
		c.more++
		return
	}
	c.found = append(c.found, m)
}

func (c *mistakes) errors(file string) *Errors {
	if len(c.found) == 0 {
		return nil
	}
	slices.SortStableFunc(c.found, func(a, b Mistake) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return &Errors{File: file, List: c.found, More: c.more}
}

// closest returns the quoted candidate that word was probably meant to be, or "".
func closest(word string, candidates []string) string {
	if s := Suggest(word, candidates); s != "" {
		return strconv.Quote(s)
	}
	return ""
}

// Suggest returns the candidate that word was probably meant to be, by edit distance, or "".
func Suggest(word string, candidates []string) string {
	if len(word) > 64 {
		return ""
	}
	best, bound := "", len(word)/3+1
	for _, c := range candidates {
		if strings.EqualFold(c, word) {
			return c
		}
		if d := distance(strings.ToLower(word), strings.ToLower(c)); d <= bound && d < len(c) {
			best, bound = c, d-1
		}
	}
	return best
}

// distance is the number of insertions, deletions, substitutions and swaps of neighbours between two words (optimal
// string alignment).
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(a)][len(b)]
}
