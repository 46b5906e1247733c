package source

import "context"

// Extent is how much lies in a range, as far as planning it tells.
type Extent struct {
	Parts   int64 // files, or whatever else the input consists of; 0 when it has none
	Records int64
	Lines   bool  // Records counts lines: those that hold nothing are no records
	Offsets bool  // Records counts places in a log: not each holds a record
	Bytes   int64 // decoded; 0 when it is not known
}

// Measurer is a Source that can say how much a range holds without reading it.
type Measurer interface {
	Measure(ctx context.Context, r Range) (Extent, error)
}
