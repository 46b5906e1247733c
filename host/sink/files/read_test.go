package files_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/fault"
)

// manifestEntry is a manifest line with all of Spark's keys.
type manifestEntry struct {
	Path             string `json:"path"`
	Size             int64  `json:"size"`
	IsDir            bool   `json:"isDir"`
	ModificationTime int64  `json:"modificationTime"`
	BlockReplication int    `json:"blockReplication"`
	BlockSize        int64  `json:"blockSize"`
	Action           string `json:"action"`
}

// sparkEntries reads the manifest by Spark's rules, written down here once more: the interval is 10, or what the
// compactions there tell; from the last compaction on every id must be there.
func sparkEntries(tb testing.TB, files durable.Files, dir string) []manifestEntry {
	tb.Helper()
	infos, err := files.List(dir + "/_spark_metadata")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		tb.Fatal(err)
	}
	latest := -1
	var compactions []int
	for _, i := range infos {
		if strings.HasPrefix(i.Name, "_") || strings.HasPrefix(i.Name, ".") {
			continue
		}
		number, compact := strings.CutSuffix(i.Name, ".compact")
		id, err := strconv.Atoi(number)
		if err != nil {
			tb.Fatalf("%s is in the manifest's directory", i.Name)
		}
		if compact {
			compactions = append(compactions, id)
		}
		latest = max(latest, id)
	}
	interval := intervalOf(compactions)
	var entries []manifestEntry
	for id := max(0, (latest+1)/interval*interval-1); id <= latest; id++ {
		name := strconv.Itoa(id)
		if (id+1)%interval == 0 {
			name += ".compact"
		}
		data, err := durable.ReadFile(files, dir+"/_spark_metadata/"+name, 1<<30)
		if err != nil {
			tb.Fatalf("the newest is %d, the interval %d: %v", latest, interval, err)
		}
		lines := strings.Split(string(data), "\n")
		if lines[0] != "v1" {
			tb.Fatalf("%s begins with %q", name, lines[0])
		}
		for _, line := range lines[1:] {
			var e manifestEntry
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				tb.Fatalf("%s: %q: %v", name, line, err)
			}
			entries = append(entries, e)
		}
	}
	return entries
}

// intervalOf is CompactibleFileStreamLog's derivation with its default of 10.
func intervalOf(compactions []int) int {
	slices.Sort(compactions)
	switch n := len(compactions); {
	case n >= 2:
		return compactions[n-1] - compactions[n-2]
	case n == 1:
		k := compactions[0] + 1
		if k <= 10 {
			return k
		}
		if 10 < k/2 {
			for d := 10; d <= k; d++ {
				if k%d == 0 {
					return d
				}
			}
		}
		return k
	}
	return 10
}

// visible returns the lines of all files that the manifest lists, and checks the list.
func visible(tb testing.TB, files durable.Files, dir string) []string {
	tb.Helper()
	seen := map[string]bool{}
	var all []string
	for _, e := range sparkEntries(tb, files, dir) {
		u, err := url.Parse(e.Path)
		if err != nil || u.Scheme != "file" || seen[u.Path] {
			tb.Fatalf("entry %+v: %v, listed before: %v", e, err, seen[u.Path])
		}
		seen[u.Path] = true
		data, err := durable.ReadFile(files, u.Path, 1<<30)
		if err != nil {
			tb.Fatal(err)
		}
		if int64(len(data)) != e.Size || e.IsDir || e.BlockSize <= 0 || e.Action != "add" {
			tb.Fatalf("entry %+v for a file of %d bytes", e, len(data))
		}
		sc := bufio.NewScanner(strings.NewReader(string(data)))
		for sc.Scan() {
			all = append(all, sc.Text())
		}
	}
	return all
}

// tree lists a directory's files with their sizes.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := os.Stat(p)
		if err == nil {
			fmt.Fprintf(&b, "%s %d\n", strings.TrimPrefix(p, dir+"/"), info.Size())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func wantFault(t *testing.T, err error, code string) {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) || f.Code() != code || f.Hint() == "" || f.Place == "" {
		t.Fatalf("got %v, want a fault %s with place and way out", err, code)
	}
}
