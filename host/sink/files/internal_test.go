package files

import (
	"bytes"
	"errors"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// FuzzManifest: no file makes the reader of manifests fail in another way than with its own error.
func FuzzManifest(f *testing.F) {
	for _, s := range []string{
		"", "v1", "v1\n", "v2\n{}", "v1\n{\"path\":\"file:///a%20b\",\"size\":1,\"modificationTime\":2}\n", "v1\n\n{", "v1\n" + strings.Repeat("x", 70000),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		lines := 0
		err := scanManifest(bytes.NewReader(data), func(line []byte) error {
			lines++
			e, err := parseEntry(line)
			if err != nil {
				return err
			}
			if _, err := pathOfURI(e.Path); err != nil && e.Path == "" {
				t.Fatalf("an empty path: %v", err)
			}
			return nil
		})
		if err != nil && !errors.Is(err, errManifest) {
			t.Fatal(err)
		}
		if lines > bytes.Count(data, []byte{'\n'}) {
			t.Fatalf("%d lines of %q", lines, data)
		}
	})
}

func TestURIs(t *testing.T) {
	for path, want := range map[string]string{
		"/in/in 004 a+b%.json":    "file:///in/in%20004%20a+b%25.json",
		"/in/in-005-ü.json":       "file:///in/in-005-ü.json",
		"/o/place=k%3Dv/x":        "file:///o/place=k%253Dv/x",
		"/o/place=q%3Ar%2520/x":   "file:///o/place=q%253Ar%252520/x",
		`/o/<|>"\^{}[]#?` + "`":   "file:///o/%3C%7C%3E%22%5C%5E%7B%7D%5B%5D%23%3F%60",
		"/o/\u00a0\u2028\x01\xff": "file:///o/%C2%A0%E2%80%A8%01%FF",
	} {
		if got := fileURI(path); got != want {
			t.Errorf("%q: %s, want %s", path, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		path := "/" + rapid.String().Draw(t, "path")
		uri := fileURI(path)
		if back, err := pathOfURI(uri); err != nil || back != path {
			t.Fatalf("%q became %s, then %q: %v", path, uri, back, err)
		}
		if u, err := url.Parse(uri); err != nil || u.Path != path {
			t.Fatalf("%s is read by others as %v: %v", uri, u, err)
		}
		if strings.ContainsAny(uri, "\"\\\n ") {
			t.Fatalf("%s would need escapes in JSON", uri)
		}
	})
}
