package delta

import (
	"path"
	"strings"
	"testing"
)

// FuzzStaged: no record of a checkpoint names a file outside the table.
func FuzzStaged(f *testing.F) {
	f.Add([]byte(`{"version":1,"attempt":"0a0b0c0d","read":-1,"parts":[{"path":"p=a/part-00000-0c0ffee0-1-0123456789abcdef.c000.zstd.parquet"}]}`))
	f.Add([]byte(`{"version":1,"attempt":"0a0b0c0d","table":"t","read":3,"removed":["../x","a/../../b"]}`))
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		st, err := parseStaged(data)
		if err != nil {
			return
		}
		names := st.Removed
		for _, p := range st.Parts {
			names = append(names, p.Path)
		}
		for _, n := range names {
			if full := path.Join("/table", n); !strings.HasPrefix(full, "/table/") {
				t.Fatalf("%q leads to %s", n, full)
			}
		}
	})
}

// FuzzKeyTexts: any key of a deletion is read into as many texts as it should have, or is a misfit.
func FuzzKeyTexts(f *testing.F) {
	for _, s := range []string{`["a",1]`, `[1,2]`, `[null,1]`, `[[1],2]`, `["\ud800","x"]`, `[`, `["a" , true ]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		texts, m := keyTexts(data, 2)
		if (m == nil) != (len(texts) == 2) || m != nil && (m.Code == "" || m.Reason == "") {
			t.Fatalf("%q: %q, %+v", data, texts, m)
		}
	})
}
