// Package kafkaconn is how the host reaches a Kafka cluster: brokers, TLS, SASL and the words for what goes wrong there.
//
// A Config is one entry of `connections` in the job file. It yields the options of a franz-go client; whoever makes the
// client adds what it is for. The package opens nothing by itself, stores no secret, and must know nothing of what is
// read or written.
package kafkaconn
