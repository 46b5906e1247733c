package rows

import "bytes"

// Lines holds JSON texts as they are, one a line. It is not safe for concurrent use.
type Lines struct {
	data []byte
	ends []int
}

// Append adds a JSON text and a line feed. Line ends between tokens are dropped. A value that is not one JSON text in
// UTF-8 is a *sink.Misfit.
func (l *Lines) Append(value []byte) error {
	if fail := checkJSON(value); fail.code != fits {
		return fail.misfit()
	}
	if bytes.IndexByte(value, '\n') < 0 && bytes.IndexByte(value, '\r') < 0 {
		l.data = append(l.data, value...)
	} else {
		for _, c := range value {
			if c != '\n' && c != '\r' {
				l.data = append(l.data, c)
			}
		}
	}
	l.data = append(l.data, '\n')
	l.ends = append(l.ends, len(l.data))
	return nil
}

// Len returns the number of lines.
func (l *Lines) Len() int { return len(l.ends) }

// Reset forgets all lines and keeps the memory.
func (l *Lines) Reset() { l.data, l.ends = l.data[:0], l.ends[:0] }

// Bytes returns the size in memory.
func (l *Lines) Bytes() int64 { return int64(len(l.data)) + 8*int64(len(l.ends)) }

// Data returns all lines, valid until the next change.
func (l *Lines) Data() []byte { return l.data }

// Ends returns where each line ends in Data, valid until the next change.
func (l *Lines) Ends() []int { return l.ends }
