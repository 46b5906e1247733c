package generator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/source"
	"github.com/wasmill/wasmill/host/source/sourcetest"
)

var update = flag.Bool("update", false, "write golden files")

func newSource(t testing.TB, cfg Config) *Source {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConformance(t *testing.T) {
	sourcetest.Run(t, func(*testing.T) sourcetest.Input {
		return sourcetest.Input{Open: func(t *testing.T) source.Source { return newSource(t, Config{Seed: 7, Total: 500}) }}
	})
}

// TestGolden pins the orders: they must not change under a running job.
func TestGolden(t *testing.T) {
	s := newSource(t, Config{Seed: 1, Total: 1_000_003})
	var b bytes.Buffer
	for _, r := range []string{`{"from":0,"to":5}`, `{"from":1000000,"to":1000003}`} {
		var c sourcetest.Collector
		if err := s.Read(context.Background(), source.Split{Name: "orders", Detail: []byte(r)}, &c); err != nil {
			t.Fatal(err)
		}
		for _, rec := range c.Records {
			fmt.Fprintf(&b, "%d %d %s %s\n", rec.Offset, rec.EventTime, rec.Key, rec.Value)
		}
	}
	const name = "testdata/orders.golden"
	if *update {
		if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("got:\n%swant:\n%s", b.Bytes(), want)
	}
}

type each func(*abi.Record) error

func (f each) Write(r *abi.Record) error                { return f(r) }
func (f each) Reject(*abi.Record, string, string) error { return errors.New("an order was rejected") }

func TestOrdersAreWhatTheySay(t *testing.T) {
	s := newSource(t, Config{Seed: 3, Total: 20_000, Customers: 50})
	status, currency, customers := map[string]int{}, map[string]int{}, map[string]int{}
	longest := 0
	err := s.Read(context.Background(), source.Split{Detail: []byte(`{"from":0,"to":20000}`)}, each(func(r *abi.Record) error {
		var o struct {
			OrderID   int64     `json:"order_id"`
			Customer  string    `json:"customer"`
			Amount    float64   `json:"amount"`
			Currency  string    `json:"currency"`
			Status    string    `json:"status"`
			CreatedAt time.Time `json:"created_at"`
			Note      string    `json:"note"`
		}
		d := json.NewDecoder(bytes.NewReader(r.Value))
		d.DisallowUnknownFields()
		if err := d.Decode(&o); err != nil {
			return err
		}
		if o.OrderID != r.Offset || o.Customer != string(r.Key) || o.CreatedAt.UnixMicro() != r.EventTime || r.Flags != abi.FlagEventTime {
			t.Errorf("record and value differ: %+v %s", r, r.Value)
		}
		if o.Amount <= 0 || len(o.Note) < 60 {
			t.Errorf("odd order %s", r.Value)
		}
		longest = max(longest, len(r.Value))
		status[o.Status]++
		currency[o.Currency]++
		customers[o.Customer]++
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	if len(customers) != 50 || len(currency) != 4 || longest > maxOrder {
		t.Errorf("%d customers, %d currencies, longest order %d bytes", len(customers), len(currency), longest)
	}
	for s, want := range map[string]int{"new": 10_000, "paid": 8_000, "cancelled": 2_000} {
		if got := status[s]; got < want*9/10 || got > want*11/10 {
			t.Errorf("%d orders are %s, about %d are due", got, s, want)
		}
	}
}

func TestRate(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := newSource(t, Config{Rate: 10, Total: 1000, Clock: func() time.Time { return now }})
	at := checkpoint.Position{Line: "100"}
	for _, step := range []struct {
		pass time.Duration
		want string
	}{{0, "100"}, {99 * time.Millisecond, "100"}, {time.Millisecond, "101"}, {time.Second, "111"}, {-time.Hour, "111"}, {3 * time.Hour, "1000"}} {
		now = now.Add(step.pass)
		to, err := s.Latest(context.Background(), at, source.Limit{})
		if err != nil {
			t.Fatal(err)
		}
		if to.Line != step.want {
			t.Errorf("after %v: %s, want %s", step.pass, to.Line, step.want)
		}
		at = to
	}
}

func TestEndless(t *testing.T) {
	s := newSource(t, Config{})
	to, err := s.Latest(context.Background(), checkpoint.Position{}, source.Limit{})
	if err != nil || to.Line != "100000" {
		t.Errorf("latest without a limit: %+v, %v", to, err)
	}
	var f *fault.Error
	if err := s.Freeze(context.Background()); !errors.As(err, &f) || f.Code() != CodeEndless {
		t.Errorf("freeze: %v", err)
	}
}

func TestBadInput(t *testing.T) {
	if _, err := New(Config{Total: -1}); err == nil {
		t.Error("a negative total is taken")
	}
	s := newSource(t, Config{})
	for _, p := range []checkpoint.Position{{Line: "x"}, {Line: "-1"}, {Line: `{"logOffset":1}`}, {Line: "1", Extra: "{}"}} {
		var f *fault.Error
		if _, err := s.Latest(context.Background(), p, source.Limit{}); !errors.As(err, &f) || f.Code() != CodePosition {
			t.Errorf("latest from %+v: %v", p, err)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	s := newSource(b, Config{Seed: 1})
	detail := fmt.Appendf(nil, `{"from":0,"to":%d}`, b.N)
	b.ReportAllocs()
	b.ResetTimer()
	if err := s.Read(context.Background(), source.Split{Detail: detail}, each(func(*abi.Record) error { return nil })); err != nil {
		b.Fatal(err)
	}
}
