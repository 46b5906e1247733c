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
