// Package kafka publishes the output of its sinks to the topics of one Kafka cluster.
//
// Exactly once: all records of a batch, for all topics, and a marker record go into one transaction, which is committed
// after the decision. The marker {batch, digest} lies in the topic __wasmill.<query id>, of one partition, compacted, under
// the connection's name as its key; a reader of committed records sees it together with the batch. The transactional.id
// wasmill.<query id>.<connection> belongs to the query for ever. Whoever opens the target takes that id over
// (InitProducerID), which ends every transaction of earlier owners; after it the marker is the truth about what is
// published, and no earlier owner can change it. So "the marker says N-1, commit N" is one atomic step.
//
// A transaction is never resumed: what is staged dies with the process, with the broker's timeout, and with the first
// error, after which the producer is thrown away. Nothing is concluded from an error of a commit: the id is taken over again
// and the marker read.
//
// The client library connects, authenticates and finds brokers; the record batches, their sequence numbers and the requests
// of a transaction are made here. A record is encoded once, by its lane, while the transforms run, into the batch that
// is sent, in a partition that the Java client would choose too; the library's own producer takes several times the
// processor time per record. What may be repeated, and what ends a producer, stands at session and send.
//
// The package decides nothing: it neither skips nor repeats a batch by itself. It must not commit a transaction that has
// a failed record, and must not take the id over after another process did, but at Open.
package kafka
