package pipeline

import (
	"encoding/json"
	"io"
	"log/slog"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/job"
)

// TestClusterIsRemembered: a pipeline that is opened anew knows that its cluster has answered before. One that hangs up at
// once, as a proxy without a broker behind it does, is then waited for, and not taken for one that wants TLS.
func TestClusterIsRemembered(t *testing.T) {
	fake, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()
	settings, err := json.Marshal(map[string]any{"brokers": fake.ListenAddrs()})
	if err != nil {
		t.Fatal(err)
	}
	j := &job.Job{Connections: []job.Connection{{Name: "main", Kind: "kafka", Settings: settings}}}
	p := &Program{Job: j, env: Env{Log: slog.New(slog.NewTextHandler(io.Discard, nil))}}
	hangsUp := func() bool {
		t.Helper()
		c, err := p.cluster(j, "main")
		if err != nil {
			t.Fatal(err)
		}
		return fault.IsPassing(c.Fault("", &kgo.ErrFirstReadEOF{}))
	}
	if hangsUp() {
		t.Error("a cluster that has never answered is waited for")
	}
	c, err := p.cluster(j, "main")
	if err != nil {
		t.Fatal(err)
	}
	opts, err := c.Options()
	if err != nil {
		t.Fatal(err)
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if _, err := kmsg.NewPtrMetadataRequest().RequestWith(t.Context(), cl); err != nil {
		t.Fatal(err)
	}
	if !hangsUp() {
		t.Error("a cluster that has answered before is not waited for")
	}
}
