package sink

// Neighbour is a Target that may stand in the way of another one of its job.
type Neighbour interface {
	// Clash says why this target and another one cannot publish a batch between them: each holds what the other waits for until
	// both are published. It is asked after both have been looked at; nil where nothing is known of one.
	Clash(other Target) error
}
