package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/kafkaconn"
)

// The codes of this package's faults, beside those of kafkaconn.
const (
	CodeConfig        = "kafka.sink.config"         // the settings contradict each other
	CodeTopic         = "kafka.sink.topic"          // a topic to publish to does not exist
	CodeMarkerTopic   = "kafka.sink.marker_topic"   // the marker topic is not as it must be
	CodeMarkerDamaged = "kafka.sink.marker_damaged" // a marker cannot be read
	CodeMarkerNewer   = "kafka.sink.marker_newer"   // a newer version of Wasmill wrote the marker
	CodeOtherQuery    = "kafka.sink.other_query"    // the marker is another query's
	CodeConflict      = "kafka.sink.conflict"       // something else is published already
	CodeFenced        = "kafka.sink.fenced"         // another process has taken the transactional id over
	CodeTooLarge      = "kafka.sink.too_large"      // a topic takes no message of that size
	CodeRefused       = "kafka.sink.refused"        // the broker does not take a record
	CodeTimeout       = "kafka.sink.timeout"        // the broker does not allow the transaction timeout
	CodeExpired       = "kafka.sink.expired"        // the broker has ended a transaction by its timeout
	CodeHanging       = "kafka.sink.hanging"        // the cluster forgot how a transaction ended in some partitions
	CodeSlow          = "kafka.sink.slow"           // a warning: a transaction has been open for half its timeout
)

// wayOutFork begins anew where the markers are of no use any more.
const wayOutFork = "begin anew where the checkpoint stands: `wasmill checkpoint fork --to DIR`, then DIR under `checkpoint` in the job file"

// isFenced tells that the broker knows a newer owner of the transactional id, or has ended the transaction by its timeout,
// which it says in the same words. kfake and some brokers say INVALID_TXN_STATE instead.
func isFenced(err error) bool {
	for _, e := range []error{kerr.ProducerFenced, kerr.InvalidProducerEpoch, kerr.FencedInstanceID, kerr.InvalidTxnState} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (t *Target) fenced(err error) error {
	if f := (*fault.Error)(nil); errors.As(err, &f) {
		return err
	}
	return fault.New(CodeFenced, t.place(), fmt.Errorf("another process has taken over %s, or the broker ended its transaction: %w", t.txnID(), err),
		"see that one process alone runs this checkpoint, and no copy of it, then start again")
}

// isStale tells that the brokers have forgotten a producer, or have of its records what they should not: a new one begins
// where the marker says.
func isStale(err error) bool {
	for _, e := range []error{
		kerr.InvalidProducerIDMapping, kerr.UnknownProducerID, kerr.OutOfOrderSequenceNumber, kerr.DuplicateSequenceNumber, kerr.TransactionAbortable,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// sendFault is the fault for an error of a transaction that is so old. The broker says the same of a transaction that it
// has ended by its timeout, as after the machine slept, and of one that another process has shut out.
func (t *Target) sendFault(err error, age time.Duration) error {
	switch {
	case isFenced(err) && age < t.expiry():
		return t.fenced(err)
	case isFenced(err):
		return fault.Passing(CodeExpired, t.place(), fmt.Errorf("the transaction was open for %s: %w", age, err),
			"it is begun anew; if this comes again, raise `transactionTimeout` of the sink")
	case isStale(err):
		return fault.Passing(kafkaconn.CodeBroker, t.place(), err, "it is begun anew; if this comes again, look into the brokers' logs")
	}
	return t.dataFault(err)
}

// expiry is from what age on a transaction that is refused counts as ended by its timeout.
func (t *Target) expiry() time.Duration { return t.cfg.TransactionTimeout / 2 }

func isUnknownTopic(err error) bool {
	return errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.UnknownTopicID) || errors.Is(err, kerr.InvalidTopicException)
}

// dataFault puts into words what a broker says about records, or hands the error to the connection.
func (t *Target) dataFault(err error) error {
	place, topic := t.place(), ""
	at := (*placeError)(nil)
	if errors.As(err, &at) {
		topic = "topic " + at.topic
		place += ", " + topic
		err = at.within(err)
	}
	switch {
	case errors.Is(err, kerr.MessageTooLarge), errors.Is(err, kerr.RecordListTooLarge):
		return fault.New(CodeTooLarge, place, err, "raise max.message.bytes of the topic, or lower `maxMessage` of the sink so that such records are set aside")
	case isUnknownTopic(err) && at != nil && at.topic == t.markerTopic():
		return fault.New(CodeMarkerTopic, place, fmt.Errorf("the marker topic, which says what is published, is gone or was made anew: %w", err), wayOutFork)
	case isUnknownTopic(err):
		return fault.New(CodeTopic, place, err, "create the topic; if it was deleted and made anew while the job ran, start the job again")
	case errors.Is(err, kerr.InvalidTimestamp):
		return fault.New(CodeRefused, place, err, "the topic's message.timestamp.before.max.ms or message.timestamp.after.max.ms does not take the event time: raise it")
	case errors.Is(err, kerr.InvalidRecord):
		return fault.New(CodeRefused, place, err, "see that records for a compacted topic have a key, and that the topic's timestamp bounds take the event time")
	case errors.Is(err, kerr.PolicyViolation), errors.Is(err, kerr.InvalidRequiredAcks), errors.Is(err, kerr.CorruptMessage), errors.Is(err, kerr.UnsupportedCompressionType):
		return fault.New(CodeRefused, place, err, "see the broker's log for why it does not take the record")
	}
	return t.brokerFault(topic, err)
}

// brokerFault is the connection's word for an error; a deadline of ours is the cluster's silence.
func (t *Target) brokerFault(place string, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer in time: %w", err)
	}
	return t.cfg.Connection.Fault(place, err)
}

func (t *Target) place() string { return "connection " + t.cfg.Connection.Name }
