package kafka

import "time"

// Hurry makes aborts give up soon: a process that the test has ended cannot reach anybody.
func (t *Target) Hurry() { t.abortPatience = 100 * time.Millisecond }

// Kill ends the target as the end of its process would: without a word to the brokers.
func (t *Target) Kill() {
	if t.producer != nil {
		t.producer.Close()
	}
	t.producer, t.staged = nil, nil
	t.partial.close()
	if t.base != nil {
		t.base.Close()
	}
	t.base = nil
}
