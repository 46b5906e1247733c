package registry

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/wasmill/wasmill/host/rows/confluent"
)

func broken(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }

func TestSchemasAreKept(t *testing.T) {
	w := newWorld(t)
	s := w.store(false)
	for range 3 {
		found, err := s.Schema(t.Context(), 2)
		if err != nil || found.ID != 2 || len(found.References) != 2 {
			t.Fatal(found, err)
		}
	}
	if got := w.requests(); len(got) != 3 {
		t.Errorf("asked %q", got)
	}
	// The next process asks once more whether it is still so, and goes on without an answer.
	w.inTrouble(broken)
	again, err := w.store(false).Schema(t.Context(), 2)
	if err != nil || again.Text != textOf(again) || len(again.References) != 2 || again.References[0].Name != "c.proto" {
		t.Fatal(again, err)
	}
	if len(w.warned) != 1 || !strings.Contains(w.warned[0], "taken as it is kept") {
		t.Errorf("warned %q", w.warned)
	}
	// One that reads only does not even ask, and writes nothing.
	w.requests()
	if _, err := w.store(true).Schema(t.Context(), 2); err != nil || len(w.requests()) != 0 {
		t.Errorf("read only: %v", err)
	}
	w.inTrouble(nil)
	if _, err := w.store(true).Schema(t.Context(), 1); err != nil {
		t.Errorf("read only, not kept: %v", err)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "1.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("read only writes: %v", err)
	}
	if _, err := w.store(false).Schema(t.Context(), 3); err != nil {
		t.Errorf("json: %v", err)
	}
}

func TestRegistryThatWasMadeAnew(t *testing.T) {
	w := newWorld(t)
	if _, err := w.store(false).Schema(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	w.set(1, `{"schema":"\"string\""}`)
	if _, err := w.store(false).Schema(t.Context(), 1); codeOf(err) != CodeChanged {
		t.Errorf("another schema under the id: %v", err)
	}
	if found, err := w.store(true).Schema(t.Context(), 1); err != nil || found.Text != `"long"` {
		t.Errorf("a replay: %v, %v", found, err)
	}
	w.set(1, "")
	if found, err := w.store(false).Schema(t.Context(), 1); err != nil || found.Text != `"long"` {
		t.Errorf("a registry that was wiped: %v, %v", found, err)
	}
}

func TestUnknownIDs(t *testing.T) {
	w := newWorld(t)
	s := w.store(false)
	for range 5 {
		if _, err := s.Schema(t.Context(), 77); !errors.Is(err, confluent.ErrUnknown) {
			t.Fatal(err)
		}
	}
	if got := w.requests(); len(got) != 1 {
		t.Errorf("asked %q", got)
	}
	w.set(77, `{"schema":"\"int\""}`)
	w.now = w.now.Add(unknownFor)
	if found, err := s.Schema(t.Context(), 77); err != nil || found.Text != `"int"` {
		t.Errorf("once it is there: %v, %v", found, err)
	}
	for id := int32(1000); id < 1000+maxUnknown/100; id++ {
		if _, err := s.Schema(t.Context(), id); !errors.Is(err, confluent.ErrUnknown) {
			t.Fatal(err)
		}
	}
	if len(s.unknown) > maxUnknown {
		t.Errorf("%d unknown ids are remembered", len(s.unknown))
	}
}

func TestGUIDs(t *testing.T) {
	w := newWorld(t)
	const guid = "00112233-4455-6677-8899-aabbccddeeff"
	w.guids[guid] = `{"guid":"` + guid + `","schema":"\"long\""}`
	for range 2 {
		if found, err := w.store(false).ByGUID(t.Context(), guid); err != nil || found.Text != `"long"` {
			t.Fatal(found, err)
		}
		w.inTrouble(broken)
	}
	w.inTrouble(nil)
	if _, err := w.store(false).ByGUID(t.Context(), "x"); !errors.Is(err, confluent.ErrUnknown) {
		t.Errorf("%v", err)
	}
}

func TestRegistryThatIsDown(t *testing.T) {
	w := newWorld(t)
	w.inTrouble(broken)
	s := w.store(false)
	if _, err := s.Schema(t.Context(), 1); codeOf(err) != CodeUnreachable || errors.Is(err, confluent.ErrUnknown) {
		t.Errorf("%v", err)
	}
	w.inTrouble(nil)
	if _, err := s.Schema(t.Context(), 1); err != nil {
		t.Errorf("it is not asked again: %v", err)
	}
}

func TestPins(t *testing.T) {
	w := newWorld(t)
	newestOut := func(ctx context.Context, c *Client) (*confluent.Schema, error) { return c.BySubject(ctx, "out", 0) }
	if found, err := w.store(false).Pinned(t.Context(), "sink-value-1", false, newestOut); err != nil || found.ID != 1 {
		t.Fatal(found, err)
	}
	if list, err := os.ReadDir(w.dir); err == nil && len(list) > 0 {
		t.Errorf("a look keeps %v", list)
	}
	if found, err := w.store(false).Pinned(t.Context(), "sink-value-1", true, newestOut); err != nil || found.ID != 1 {
		t.Fatal(found, err)
	}
	w.subjects["out/versions/latest"] = `{"subject":"out","version":4,"id":2000,"schema":"\"string\""}`
	if found, err := w.store(false).Pinned(t.Context(), "sink-value-1", true, newestOut); err != nil || found.ID != 1 {
		t.Errorf("a newer version is taken: %v, %v", found, err)
	}
	if found, err := w.store(false).Pinned(t.Context(), "sink-value-2", true, newestOut); err != nil || found.ID != 2000 {
		t.Errorf("another key: %v, %v", found, err)
	}
}

func TestFiles(t *testing.T) {
	w := newWorld(t)
	if _, err := w.store(false).Schema(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(w.dir, "2.json")
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"version":1,"id":2,"format":"protobuf","schema":"syntax = \"proto3\"; import \"b.proto\"; message A { B b = 1; }","references":[` +
		`{"name":"c.proto","schema":"syntax = \"proto3\"; message C { }"},{"name":"b.proto","schema":"syntax = \"proto3\"; import \"c.proto\"; message B { C c = 1; }"}]}` + "\n"
	if string(got) != want {
		t.Errorf("the file is\n%s\nwant\n%s", got, want)
	}
	for _, c := range []struct{ text, want string }{
		{"", "damaged"},
		{"{", "damaged"},
		{"{}", "damaged"},
		{`{"version":1,"id":2,"format":"avro","schema":""}`, "damaged"},
		{`{"version":2,"id":2,"format":"avro","schema":"x"}`, "form 2"},
	} {
		if err := os.WriteFile(name, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := w.store(false).Schema(t.Context(), 2); codeOf(err) != CodeKept || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.text, err)
		}
	}
}

// TestManyAsk: lanes that need a schema at once ask once.
func TestManyAsk(t *testing.T) {
	w := newWorld(t)
	s := w.store(false)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var texts []string
	for range 8 {
		wg.Go(func() {
			found, err := s.Schema(t.Context(), 1)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			texts = append(texts, textOf(found))
		})
	}
	wg.Wait()
	if got := w.requests(); len(got) != 1 {
		t.Errorf("asked %q", got)
	}
	if slices.ContainsFunc(texts, func(s string) bool { return s != `"long"` }) {
		t.Errorf("%q", texts)
	}
}
