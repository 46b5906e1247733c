package kafka

import "time"

// Hurry makes aborts give up soon: a process that the test has ended cannot reach anybody.
func (t *Target) Hurry() { t.abortPatience = 100 * time.Millisecond }

// Kill ends the target as the end of its process would: without a word to the brokers.
func (t *Target) Kill() {
	t.unstage()
	if t.session != nil {
		t.session.close()
	}
	t.session, t.partial = nil, atLeastOnce{}
	if t.base != nil {
		t.base.Close()
	}
	t.base = nil
}
