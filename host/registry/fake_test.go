package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/rows/confluent"
)

// fake is a registry in the process.
type fake struct {
	*httptest.Server
	mu       sync.Mutex
	byID     map[int]string // answers
	subjects map[string]string
	guids    map[string]string
	asked    []string
	trouble  http.HandlerFunc // answers instead, when it is set
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{
		guids: map[string]string{},
		byID: map[int]string{
			1: `{"schema":"\"long\""}`,
			2: `{"schema":"syntax = \"proto3\"; import \"b.proto\"; message A { B b = 1; }","schemaType":"PROTOBUF","references":[{"name":"b.proto","subject":"b","version":2}]}`,
			3: `{"schema":"{}","schemaType":"JSON"}`,
			4: `{"schema":"x","schemaType":"TOML"}`,
			5: `{"schema":"\"x.Gone\"","references":[{"name":"x.Gone","subject":"gone","version":1}]}`,
			6: `{"schema":"\"x.Y\"","references":[{"name":"x.Y","subject":"endless","version":1}]}`,
			7: `{}`,
		},
		subjects: map[string]string{
			"b/versions/2":        `{"subject":"b","version":2,"id":20,"schema":"syntax = \"proto3\"; import \"c.proto\"; message B { C c = 1; }","schemaType":"PROTOBUF","references":[{"name":"c.proto","subject":"c","version":1}]}`,
			"c/versions/1":        `{"subject":"c","version":1,"id":21,"schema":"syntax = \"proto3\"; message C { }","schemaType":"PROTOBUF"}`,
			"out/versions/latest": `{"subject":"out","version":3,"id":1,"schema":"\"long\""}`,
			"out/versions/1":      `{"subject":"out","version":1,"id":9,"schema":"\"int\""}`,
		},
	}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

// ServeHTTP implements http.Handler.
func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, r.Method+" "+r.URL.Path)
	if f.trouble != nil {
		f.trouble(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/vnd.schemaregistry.v1+json")
	answer, code := f.answer(r)
	if answer == "" {
		w.WriteHeader(http.StatusNotFound)
		answer = fmt.Sprintf(`{"error_code":%d,"message":"not here"}`, code)
	}
	_, _ = w.Write([]byte(answer))
}

func (f *fake) answer(r *http.Request) (text string, code int) {
	var id int
	if n, _ := fmt.Sscanf(r.URL.Path, "/schemas/ids/%d", &id); n == 1 {
		return f.byID[id], noSchema
	}
	if guid, ok := strings.CutPrefix(r.URL.Path, "/schemas/guids/"); ok {
		return f.guids[guid], noSchema
	}
	path, ok := strings.CutPrefix(r.URL.Path, "/subjects/")
	if !ok {
		return "", 404
	}
	if r.Method == http.MethodGet {
		if strings.HasPrefix(path, "endless/") {
			var v int
			_, _ = fmt.Sscanf(path, "endless/versions/%d", &v)
			return fmt.Sprintf(`{"id":1,"schema":"{}","references":[{"name":"x.Y%d","subject":"endless","version":%d}]}`, v, v+1), 0
		}
		return f.subjects[path], noSubject
	}
	var in struct{ Schema string }
	_ = json.NewDecoder(r.Body).Decode(&in)
	if subject, ok := strings.CutSuffix(path, "/versions"); ok {
		if in.Schema == `"bad"` {
			return "", 0
		}
		f.subjects[subject+" "+in.Schema] = fmt.Sprintf(`{"subject":%q,"version":1,"id":50,"schema":%q}`, subject, in.Schema)
		return `{"id":50}`, 0
	}
	return f.subjects[path+" "+in.Schema], noSchema
}

// requests returns what was asked since the last call.
func (f *fake) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.asked
	f.asked = nil
	return out
}

func (f *fake) inTrouble(h http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trouble = h
}

func (f *fake) set(id int, answer string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.byID[id] = answer
}

// client returns a client whose pauses take no time.
func client(t *testing.T, cfg Config, urls ...string) *Client {
	t.Helper()
	cfg.Name, cfg.URLs = "main", urls
	c, err := NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.pause = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	return c
}

// world is a store over a fake registry, with a clock of its own.
type world struct {
	*fake
	client *Client
	dir    string
	now    time.Time
	warned []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	f := newFake(t)
	return &world{fake: f, client: client(t, Config{}, f.URL), dir: t.TempDir() + "/schemas/main", now: time.Unix(0, 0)}
}

// store returns a store as a new process has it.
func (w *world) store(readOnly bool) *Store {
	return NewStore(StoreConfig{
		Client: w.client, Files: durable.OS(), Dir: w.dir, ReadOnly: readOnly,
		Warn: func(err error) { w.warned = append(w.warned, err.Error()) }, Clock: func() time.Time { return w.now },
	})
}

func textOf(s *confluent.Schema) string {
	if s == nil {
		return ""
	}
	return s.Text
}
