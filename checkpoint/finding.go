package checkpoint

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Finding is one thing that is wrong with a checkpoint.
type Finding struct {
	Code    string `json:"code"`
	File    string `json:"file"` // relative to the checkpoint directory; of a target, its place
	Message string `json:"message"`
	WayOut  string `json:"wayOut"`
	// Note marks what does not keep the job from going on.
	Note bool `json:"note,omitempty"`
}

func newFinding(code, file, wayOut, format string, args ...any) Finding {
	return Finding{Code: code, File: file, Message: fmt.Sprintf(format, args...), WayOut: wayOut}
}

// findingOf turns an error about a file into a finding.
func findingOf(err error) Finding {
	var torn *TornError
	if errors.As(err, &torn) {
		return Finding{Code: CodeTorn, File: torn.File, Message: "incomplete: " + torn.Err.Error(), WayOut: torn.Hint()}
	}
	var coded *Error
	if errors.As(err, &coded) {
		return Finding{Code: coded.ErrCode, File: strings.Join(coded.Files, ", "), Message: coded.Err.Error(), WayOut: coded.WayOut}
	}
	return Finding{Code: CodeIO, Message: err.Error(), WayOut: wayDisk}
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
