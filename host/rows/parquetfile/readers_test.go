package parquetfile_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
	"github.com/wasmill/wasmill/host/rows/rowstest"
)

// drawn is a table of any schema.
type drawn struct{ table *rows.Table }

// TestOtherReadersAndWriters lets pyarrow, DuckDB and, with WASMILL_SPARK=1, Spark read files of any schema, and reads what
// pyarrow and Spark make of the same rows in their own forms, old ones included. WASMILL_READERS names the Python that
// .ci/readers/install.sh prints, WASMILL_FILES how many files are tried.
func TestOtherReadersAndWriters(t *testing.T) {
	python := os.Getenv("WASMILL_READERS")
	if python == "" {
		t.Skip("WASMILL_READERS is not set: this needs pyarrow and DuckDB")
	}
	count := 60
	if s := os.Getenv("WASMILL_FILES"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		count = n
	}
	dir := t.TempDir()
	tables := map[string]*rows.Table{}
	generator := rapid.Custom(func(t *rapid.T) drawn {
		s := rowstest.Schema(t, 3)
		tab, _ := rowstest.Table(t, s, rapid.IntRange(1, 30).Draw(t, "rows"))
		return drawn{tab}
	})
	for i := range count {
		tab := generator.Example(i).table
		name := strconv.Itoa(i)
		tables[name] = tab
		var lines, file bytes.Buffer
		for row := range tab.Len() {
			lines.Write(append(rowstest.JSON(tab, row), '\n'))
		}
		encode(t, newWriter(t, tab.Schema(), parquetfile.Zstd), &file, []parquetfile.Rows{{Table: tab}})
		for ext, b := range map[string][]byte{".parquet": file.Bytes(), ".jsonl": lines.Bytes()} {
			if err := os.WriteFile(filepath.Join(dir, name+ext), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	args := []string{filepath.Join("..", "..", "..", ".ci", "readers", "nested.py"), dir}
	if os.Getenv("WASMILL_SPARK") == "1" {
		args = append(args, "--spark")
	}
	out, err := exec.Command(python, args...).CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
	forms, err := filepath.Glob(filepath.Join(dir, "*.*.parquet"))
	if err != nil || len(forms) < 4*count {
		t.Fatalf("%d files of others, %v", len(forms), err)
	}
	for _, path := range forms {
		name, _, _ := strings.Cut(filepath.Base(path), ".")
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			compareTables(t, readAll(t, b, tables[name].Schema(), parquetfile.ReadOptions{}, 5), tables[name])
		})
	}
}
