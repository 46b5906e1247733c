package stdout_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/sinktest"
	"github.com/wasmill/wasmill/host/sink/stdout"
)

func TestSuite(t *testing.T) {
	sinktest.Run(t, func(*testing.T) sinktest.Place {
		var out bytes.Buffer
		return sinktest.Place{
			Sink: "screen",
			Open: func(t *testing.T) sink.Target {
				target, err := stdout.New(stdout.Config{Sink: "screen", Out: &out})
				if err != nil {
					t.Fatal(err)
				}
				return target
			},
			Value:  func(i int) string { return `{"i":` + strings.Repeat("1", i+1) + `}` },
			Misfit: `{"i":`,
			Visible: func(*testing.T) []string {
				return strings.FieldsFunc(out.String(), func(r rune) bool { return r == '\n' })
			},
		}
	})
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestWriterFails(t *testing.T) {
	target, err := stdout.New(stdout.Config{Sink: "screen", Out: brokenPipe{}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := target.NewLane("screen")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Append(&abi.Record{Value: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	s, err := target.Stage(context.Background(), sink.Output{Sinks: []sink.SinkOutput{{Name: "screen", Lanes: []sink.Lane{l}}}})
	if err != nil {
		t.Fatal(err)
	}
	var f *fault.Error
	if err := target.Publish(context.Background(), &checkpoint.Decision{}, s); !errors.As(err, &f) || f.Code() != stdout.CodeWrite {
		t.Fatalf("got %v, want %s", err, stdout.CodeWrite)
	}
}

func TestNewAsksForAWriter(t *testing.T) {
	if _, err := stdout.New(stdout.Config{Sink: "screen"}); err == nil {
		t.Fatal("a target without a writer")
	}
}

// TestModes: what a record becomes in each mode, by its lines.
func TestModes(t *testing.T) {
	records := []abi.Record{
		{Key: []byte("a"), Value: []byte(`{"n":1}`)},
		{Key: []byte("a")},
		{Value: []byte("2")},
		{Key: []byte("a"), Value: []byte(`{"n":`)},
		{},
	}
	for mode, want := range map[stdout.Mode][]string{
		stdout.Append:    {`{"n":1}`, "misfit", "2", "misfit", "misfit"},
		stdout.Upsert:    {`{"key":"a","value":{"n":1}}`, `{"key":"a","value":null}`, "misfit", "misfit", "misfit"},
		stdout.Changelog: {`{"n":1}`, `{"deleted":true,"key":"a"}`, "2", "misfit", "misfit"},
	} {
		var out bytes.Buffer
		target, err := stdout.New(stdout.Config{Sink: "screen", Out: &out, Mode: mode})
		if err != nil {
			t.Fatal(err)
		}
		for i := range records {
			l, err := target.NewLane("screen")
			if err != nil {
				t.Fatal(err)
			}
			out.Reset()
			got := "misfit"
			var misfit *sink.Misfit
			if err := l.Append(&records[i]); err == nil {
				s, err := target.Stage(context.Background(), sink.Output{Sinks: []sink.SinkOutput{{Name: "screen", Lanes: []sink.Lane{l}}}})
				if err != nil {
					t.Fatal(err)
				}
				if err := target.Publish(context.Background(), &checkpoint.Decision{}, s); err != nil {
					t.Fatal(err)
				}
				got = strings.TrimSuffix(out.String(), "\n")
			} else if !errors.As(err, &misfit) || l.Rows() != 0 {
				t.Errorf("%s, record %d: %v, %d rows", mode, i, err, l.Rows())
			}
			if got != want[i] {
				t.Errorf("%s, record %d: %s, want %s", mode, i, got, want[i])
			}
		}
	}
}
