package demo

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/wasmill/wasmill/host/fault"
)

// broker is an in-process Kafka of one node, in memory, on a free port of the loopback interface.
type broker struct{ cluster *kfake.Cluster }

func newBroker() (*broker, error) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, topicOrders, topicConverted))
	if err == nil && len(c.ListenAddrs()) == 0 {
		err = errors.New("it listens nowhere")
	}
	if err != nil {
		return nil, fault.New(CodeBroker, "the in-process broker", err, "the demo needs a free port on 127.0.0.1")
	}
	return &broker{cluster: c}, nil
}

func (b *broker) addresses() []string { return b.cluster.ListenAddrs() }

func (b *broker) close() { b.cluster.Close() }
