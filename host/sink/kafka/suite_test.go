package kafka_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/kafka"
	"github.com/wasmill/wasmill/host/sink/sinktest"
)

// suiteQuery is the query that the suite opens targets for.
const suiteQuery = query

func suitePlace(c *cluster, guarantee sink.Guarantee, topic string) sinktest.Place {
	open := func(t *testing.T) sink.Target {
		return c.target(t, nil, func(cfg *kafka.Config) {
			cfg.Guarantee, cfg.MaxMessage = guarantee, 1000
			cfg.Sinks[0].Topic = topic
		})
	}
	return sinktest.Place{
		Sink: "orders", Open: open, Usurp: open, Shared: true, TakesEmpty: true,
		Value:   func(i int) string { return "value " + strconv.Itoa(i) },
		Misfit:  strings.Repeat("x", 1000),
		Visible: func(t *testing.T) []string { return values(c.committed(t, topic)) },
	}
}

func TestSuite(t *testing.T) {
	sinktest.Run(t, func(t *testing.T) sinktest.Place { return suitePlace(newFake(t), sink.ExactlyOnce, "out") })
}

func TestSuiteAtLeastOnce(t *testing.T) {
	sinktest.Run(t, func(t *testing.T) sinktest.Place { return suitePlace(newFake(t), sink.AtLeastOnce, "out") })
}

// TestSuiteOnARealBroker runs where WASMILL_KAFKA names a broker.
func TestSuiteOnARealBroker(t *testing.T) {
	sinktest.Run(t, func(t *testing.T) sinktest.Place {
		c := realCluster(t)
		return suitePlace(c, sink.ExactlyOnce, c.topic(t, 4))
	})
}

func TestSuiteAtLeastOnceOnARealBroker(t *testing.T) {
	sinktest.Run(t, func(t *testing.T) sinktest.Place {
		c := realCluster(t)
		return suitePlace(c, sink.AtLeastOnce, c.topic(t, 4))
	})
}

func realAddress(t testing.TB) string {
	t.Helper()
	addr := os.Getenv("WASMILL_KAFKA")
	if addr == "" {
		t.Skip("WASMILL_KAFKA does not name a broker")
	}
	return addr
}

var unique = strconv.FormatInt(time.Now().UnixNano(), 36)
