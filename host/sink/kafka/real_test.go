package kafka_test

import (
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
)

var realCount atomic.Int64

// realCluster is the real broker, under a connection's name of its own.
func realCluster(t testing.TB) *cluster {
	t.Helper()
	addr := realAddress(t)
	return &cluster{addrs: strings.Split(addr, ","), conn: "c" + unique + "-" + strconv.FormatInt(realCount.Add(1), 10), query: suiteQuery}
}

// topic makes a topic for one test.
func (c *cluster) topic(t testing.TB, partitions int32) string {
	t.Helper()
	cl := c.client(t)
	defer cl.Close()
	adm := kadm.NewClient(cl)
	name := "out-" + c.conn
	if _, err := adm.CreateTopic(t.Context(), partitions, -1, nil, name); err != nil {
		t.Fatal(err)
	}
	return name
}
