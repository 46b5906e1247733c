package job

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Env is what Parse may look at outside the text.
type Env struct {
	// Dir is the absolute folder of the job file; relative paths hang on it. "" leaves them relative to the process.
	Dir string
	// LookupEnv finds ${env:X}; nil finds nothing.
	LookupEnv func(name string) (string, bool)
	// ReadFile reads ${file:X}; nil finds nothing. One trailing newline is cut.
	ReadFile func(path string) ([]byte, error)
	// CheckConnection says what is wrong with the settings of a connection of a kind; nil takes any.
	CheckConnection func(name, kind string, settings []byte) error
	// CheckStatement says what is wrong with a statement for a kind of database, whose parameters stand for columns; nil takes any.
	CheckStatement func(kind, statement string, columns []Column) error
	// Stock are the names of the transforms that come with the program, sorted.
	Stock []string
}

// reference is ${env:X}, ${env:X:-default} or ${file:X}.
var reference = regexp.MustCompile(`\$\{(env|file):([^}]*)\}`)

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

const maxSecret = 64 << 10

// interpolate replaces every reference in s. What it puts in is not looked at again.
func (e *Env) interpolate(s string) (string, error) {
	var b strings.Builder
	last := 0
	for _, m := range reference.FindAllStringSubmatchIndex(s, -1) {
		b.WriteString(s[last:m[0]])
		v, err := e.resolve(s[m[2]:m[3]], s[m[4]:m[5]])
		if err != nil {
			return "", err
		}
		b.WriteString(v)
		last = m[1]
	}
	b.WriteString(s[last:])
	return b.String(), nil
}

func (e *Env) resolve(kind, what string) (string, error) {
	if kind == "file" {
		return e.file(what)
	}
	name, def, hasDefault := strings.Cut(what, ":-")
	if !envName.MatchString(name) {
		return "", fmt.Errorf("${env:%s} does not name a variable; write ${env:NAME} or ${env:NAME:-default}", cut(what))
	}
	if e.LookupEnv != nil {
		// As in a shell, :- also stands in for an empty value.
		if v, ok := e.LookupEnv(name); ok && (v != "" || !hasDefault) {
			if !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
				return "", fmt.Errorf("the variable %s is not UTF-8 text", name)
			}
			return v, nil
		}
	}
	if !hasDefault {
		return "", fmt.Errorf("the variable %s is not set; set it, or write ${env:%s:-default}", name, name)
	}
	return def, nil
}

func (e *Env) file(path string) (string, error) {
	if path == "" || e.ReadFile == nil {
		return "", fmt.Errorf("${file:%s} names no file", cut(path))
	}
	b, err := e.ReadFile(inDir(e.Dir, path))
	if err != nil {
		if pe, ok := errors.AsType[*fs.PathError](err); ok {
			err = pe.Err
		}
		return "", fmt.Errorf("read the file %s: %w", cut(path), err)
	}
	if len(b) > maxSecret || !utf8.Valid(b) || strings.ContainsRune(string(b), 0) {
		return "", fmt.Errorf("the file %s is not UTF-8 text of at most 64 KiB", cut(path))
	}
	s := strings.TrimSuffix(string(b), "\n")
	return strings.TrimSuffix(s, "\r"), nil
}
