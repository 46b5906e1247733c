package demo

import (
	"errors"
	"io/fs"

	"github.com/wasmill/wasmill/host/fault"
)

// The codes of this package's faults.
const (
	CodeFolder   = "demo.folder"   // the demo's folder cannot be used
	CodeBroker   = "demo.broker"   // the in-process broker does not start or answer
	CodeEngine   = "demo.engine"   // an engine ended by itself
	CodeStalled  = "demo.stalled"  // nothing moves any more
	CodeProof    = "demo.proof"    // something is lost, doubled, out of order or wrong
	CodeStopped  = "demo.stopped"  // stopped before the proof
	CodeTerminal = "demo.terminal" // the terminal cannot be set up
)

// folderFault says what is wrong with a place in the demo's folder, without the name of the system call.
func folderFault(place string, err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	return fault.New(CodeFolder, place, err, "name an empty folder that you may write to with --dir, or another place for temporary files with $TMPDIR")
}
