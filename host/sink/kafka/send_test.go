package kafka

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestWorstAnswer: what a broker has against one partition keeps the others of the transaction out. It is the cause that is
// told, in whichever order they are answered.
func TestWorstAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		cause  *kerr.Error
		repeat bool
	}{
		"refused":     {kerr.TopicAuthorizationFailed, false},
		"fenced":      {kerr.InvalidProducerEpoch, false},
		"passing":     {kerr.NotLeaderForPartition, true},
		"unknown now": {kerr.UnknownTopicID, true},
	} {
		for first := range int32(2) {
			t.Run(name, func(t *testing.T) {
				under := map[place]*queue{}
				topic := kmsg.NewProduceResponseTopic()
				topic.Topic = "out"
				for i := range int32(2) {
					at := place{"out", i}
					under[at] = &queue{place: at, chunks: []*chunk{{rows: 1}}}
					p := kmsg.NewProduceResponseTopicPartition()
					p.Partition, p.ErrorCode = i, kerr.OperationNotAttempted.Code
					if i == first {
						p.ErrorCode = c.cause.Code
					}
					topic.Partitions = append(topic.Partitions, p)
				}
				resp := kmsg.NewPtrProduceResponse()
				resp.Topics = append(resp.Topics, topic)
				err := answers(resp, under)
				if retry := (*again)(nil); errors.As(err, &retry) != c.repeat {
					t.Errorf("sent again: %t, want %t: %v", !c.repeat, c.repeat, err)
				}
				if !c.repeat && !errors.Is(err, c.cause) {
					t.Errorf("it says %v, want %v", err, c.cause)
				}
			})
		}
	}
}
