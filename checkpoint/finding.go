package checkpoint

import "fmt"

// Finding is one thing that is wrong with a checkpoint.
type Finding struct {
	Code    string `json:"code"`
	File    string `json:"file"` // relative to the checkpoint directory
	Message string `json:"message"`
	WayOut  string `json:"wayOut"`
	// Note marks what does not keep the job from going on.
	Note bool `json:"note,omitempty"`
}

func newFinding(code, file, wayOut, format string, args ...any) Finding {
	return Finding{Code: code, File: file, Message: fmt.Sprintf(format, args...), WayOut: wayOut}
}
