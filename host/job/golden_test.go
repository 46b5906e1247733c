package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"github.com/wasmill/wasmill/host/kafkaconn"
	"github.com/wasmill/wasmill/host/registry"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/sink/sql"
)

var update = flag.Bool("update", false, "write the golden files")

// testEnv is a fixed world: the job file lies in /jobs.
func testEnv() Env {
	vars := map[string]string{"DATA": "/data", "EMPTY": ""}
	return Env{
		Dir:       "/jobs",
		LookupEnv: func(name string) (string, bool) { v, ok := vars[name]; return v, ok },
		ReadFile: func(path string) ([]byte, error) {
			if path == "/run/secrets/password" {
				return []byte("s3cret\n"), nil
			}
			return nil, &os.PathError{Op: "open", Path: path, Err: os.ErrNotExist}
		},
		Stock: []string{"aggregate", "filter", "join", "tumbling"},
		CheckConnection: func(name, kind string, settings []byte) error {
			var err error
			switch kind {
			case "kafka":
				_, err = kafkaconn.Parse(name, settings)
			case "schemaRegistry":
				_, err = registry.Parse(name, settings)
			}
			return err
		},
		CheckStatement: func(kind, statement string, columns []Column) error {
			schema, err := rows.ParseType("struct<" + strings.Join(columnNames(columns), ": string, ") + ": string>")
			if err != nil {
				return err
			}
			s, err := rows.NewSchema(schema.Fields)
			if err == nil {
				_, err = sql.ParseStatement(kind, statement, s)
			}
			return err
		},
	}
}

func fixtures(t testing.TB, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no fixtures %s: %v", pattern, err)
	}
	return paths
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// golden compares got with a file, or writes it under -update.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(read(t, path)), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got), go test -update writes it:\n%s", path, diff)
	}
}

func TestGoodFiles(t *testing.T) {
	for _, path := range fixtures(t, "*.good.yaml") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			j, err := Parse("job.yaml", read(t, path), testEnv())
			if err != nil {
				t.Fatal(err)
			}
			b, err := json.MarshalIndent(j, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, strings.TrimSuffix(path, ".yaml")+".json", append(b, '\n'))
		})
	}
}

func TestBadFiles(t *testing.T) {
	for _, path := range fixtures(t, "*.bad.yaml") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			j, err := Parse("job.yaml", read(t, path), testEnv())
			var all *Errors
			if !errors.As(err, &all) {
				t.Fatalf("error is %v, not *Errors", err)
			}
			if (j != nil) != all.Unsupported() {
				t.Errorf("a job comes with an error iff it is only unsupported; job %v, unsupported %v", j != nil, all.Unsupported())
			}
			if all.Hint() == "" || !strings.HasPrefix(all.Code(), "job.") {
				t.Errorf("code %q, hint %q", all.Code(), all.Hint())
			}
			var b strings.Builder
			for _, m := range all.List {
				b.WriteString(m.Code + " ")
			}
			golden(t, strings.TrimSuffix(path, ".yaml")+".txt", []byte(strings.TrimSpace(b.String())+"\n"+err.Error()+"\n"))
		})
	}
}

// TestBadFilesHoldOneMistake keeps the fixtures to the point: one mistake a file, but for those that say otherwise.
func TestBadFilesHoldOneMistake(t *testing.T) {
	for _, path := range fixtures(t, "*.bad.yaml") {
		_, err := Parse("job.yaml", read(t, path), testEnv())
		var all *Errors
		if !errors.As(err, &all) {
			t.Fatalf("%s: %v", path, err)
		}
		base := filepath.Base(path)
		many := strings.HasPrefix(base, "five") || strings.HasPrefix(base, "many-") || strings.HasPrefix(base, "design")
		if !many && len(all.List) != 1 {
			t.Errorf("%s has %d mistakes:\n%v", base, len(all.List), err)
		}
	}
}

func compiledSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("job.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("job.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// asJSON reads YAML as an editor would, for the schema.
func asJSON(t *testing.T, text []byte) (any, bool) {
	t.Helper()
	var n yaml.Node
	if err := yaml.Load(text, &n); err != nil || len(n.Content) != 1 {
		return nil, false
	}
	c := &checker{env: testEnv(), places: map[string]Pos{}}
	b, ok := c.json(nil, n.Content[0], &Field{Interpolated: true}, "")
	if !ok && len(b) == 0 {
		return nil, false
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	return v, err == nil
}

func TestSchemaAcceptsGoodFiles(t *testing.T) {
	s := compiledSchema(t)
	for _, path := range fixtures(t, "*.good.yaml") {
		v, ok := asJSON(t, read(t, path))
		if !ok {
			t.Fatalf("%s is not JSON", path)
		}
		if err := s.Validate(v); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestSchemaRefusesBadFiles: what the schema can see, it refuses; the rest needs the whole file.
func TestSchemaRefusesBadFiles(t *testing.T) {
	s := compiledSchema(t)
	semantic := map[string]bool{CodeReference: true, CodeCycle: true, CodeConflict: true, CodeDuplicate: true, CodeEnv: true, CodeYAML: true, CodeValue: true, CodeMissing: true, CodeRange: true, CodeUnsupported: true}
	refused := 0
	for _, path := range fixtures(t, "*.bad.yaml") {
		_, err := Parse("job.yaml", read(t, path), testEnv())
		var all *Errors
		errors.As(err, &all)
		v, ok := asJSON(t, read(t, path))
		if !ok {
			continue
		}
		if s.Validate(v) != nil {
			refused++
			continue
		}
		if !semantic[all.List[0].Code] {
			t.Errorf("%s: the schema accepts a file with %v", path, err)
		}
	}
	if refused < 20 {
		t.Errorf("the schema refuses only %d bad files", refused)
	}
}

func TestGeneratedFiles(t *testing.T) {
	golden(t, filepath.Join("testdata", SchemaFile), Schema())
	golden(t, "REFERENCE.md", Reference())
}
