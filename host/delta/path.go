package delta

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/wasmill/wasmill/host/fault"
)

const upperHex = "0123456789ABCDEF"

// nullDir is the directory name of a null, as Hive has it.
const nullDir = "__HIVE_DEFAULT_PARTITION__"

// PartitionDir returns the directory, relative to the table, of the files with these partition values: "day=2026-01-02/p=a%3Db".
// Everything but letters, digits, '_', '-' and '.' is escaped byte by byte. Without columns it is empty. It is a convention
// only: readers take values from the log.
func PartitionDir(columns []string, values []*string) string {
	var b strings.Builder
	for i, c := range columns {
		if i > 0 {
			b.WriteByte('/')
		}
		escape(&b, c, "_.-")
		b.WriteByte('=')
		if values[i] == nil || *values[i] == "" {
			b.WriteString(nullDir)
			continue
		}
		escape(&b, *values[i], "_.-")
	}
	return b.String()
}

// LogPath returns what an add holds for a file with that path relative to the table: the path as a URI.
func LogPath(rel string) string {
	var b strings.Builder
	escape(&b, rel, "_.-~/=")
	return b.String()
}

func escape(b *strings.Builder, s, plain string) {
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(plain, c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.Write([]byte{'%', upperHex[c>>4], upperHex[c&15]})
	}
}

var hasScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)

// FilePath returns the path, relative to the table, of the file that an action names. It refuses a file outside the table.
func FilePath(logged string) (string, error) {
	p, err := decodePath(logged)
	if err == nil && (hasScheme.MatchString(logged) || strings.HasPrefix(p, "/")) {
		err = errors.New("an absolute path, as shallow clones have")
	}
	if err == nil {
		for part := range strings.SplitSeq(p, "/") {
			if part == "" || part == "." || part == ".." {
				err = errors.New("a path that does not stay inside the table")
			}
		}
	}
	if err != nil {
		return "", fault.New(CodePath, fmt.Sprintf("data file %q", logged), err, "copy the table with its files to one place and use the copy")
	}
	return p, nil
}

// decodePath takes the URI encoding from a path, so that two spellings of it are one.
func decodePath(logged string) (string, error) {
	p, err := url.PathUnescape(logged)
	if err != nil {
		return "", fmt.Errorf("path %.200q: %w", logged, err)
	}
	if !utf8.ValidString(p) || strings.IndexByte(p, 0) >= 0 {
		return "", fmt.Errorf("path %.200q: not a file's name", logged)
	}
	return p, nil
}

// fileKey is what the protocol tells files apart by: the path and the deletion vector. The path has been checked.
func fileKey(logged string, dv *DeletionVector) string {
	p, err := decodePath(logged)
	if err != nil {
		p = logged
	}
	if dv == nil {
		return p
	}
	return p + "\x00" + dv.id()
}

// File returns the path, relative to the table, of a file whose rows are all in the table. It refuses one with a deletion
// vector, because that is not applied.
func (a *Add) File() (string, error) {
	if a.DeletionVector != nil {
		return "", fault.New(CodeFeature, a.Path, errors.New("some rows of the file are deleted by a deletion vector (feature deletionVectors)"),
			"run REORG TABLE .. APPLY (PURGE) in Spark, or write to another table")
	}
	return FilePath(a.Path)
}
