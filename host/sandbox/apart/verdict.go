package apart

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"time"

	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sandbox"
)

// verdictVersion is the version of a verdict's file, and part of its name.
const verdictVersion = 1

// outcome is what came of compiling a module.
type outcome string

// The outcomes.
const (
	fine    outcome = "fine"
	refused outcome = "refused" // the engine does not take it
	cpuOver outcome = "cpu"     // over the limit of processor time
	memOver outcome = "memory"
	timeOut outcome = "time"
	crashed outcome = "crashed"
)

// verdict is what is known of a module.
type verdict struct {
	Outcome outcome `json:"outcome"`
	Reason  string  `json:"reason,omitempty"`
	// Entry is the file of compiled code below the cache's folder, "" where there is none; Digest is its sha256.
	Entry  string `json:"entry,omitempty"`
	Digest string `json:"sha256,omitempty"`
	// passing verdicts hang on the state of the machine and are not kept in a file.
	passing bool
}

// The form of a verdict's file: a line with the version and the sha256 of what follows, which is one JSON object.
const verdictHead = "wasmill verdict %d %x\n"

// maxVerdict bounds what is read of a file, in bytes.
const maxVerdict = 64 << 10

func (v *verdict) encode() ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode verdict: %w", err)
	}
	return append(fmt.Appendf(nil, verdictHead, verdictVersion, sha256.Sum256(body)), body...), nil
}

var errDamaged = errors.New("the verdict is damaged")

// entryName is the form of an entry's name: the engine's folder by version and processor, and a key.
var entryName = regexp.MustCompile(`^wazero-[A-Za-z0-9.+_-]{1,100}/[0-9a-f]{64}$`)

// decode reads a verdict's file. It believes no part of it before the checksum, and after it only what makes sense.
func decode(text []byte) (*verdict, error) {
	end := bytes.IndexByte(text, '\n') + 1
	body := text[end:]
	if string(text[:end]) != fmt.Sprintf(verdictHead, verdictVersion, sha256.Sum256(body)) {
		return nil, errDamaged
	}
	v := &verdict{}
	if err := json.Unmarshal(body, v); err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	switch v.Outcome {
	case fine, refused, cpuOver, memOver, timeOut, crashed:
	default:
		return nil, fmt.Errorf("%w: outcome %q", errDamaged, v.Outcome)
	}
	if v.Entry != "" && (!entryName.MatchString(v.Entry) || path.Clean(v.Entry) != v.Entry) {
		return nil, fmt.Errorf("%w: entry %q", errDamaged, v.Entry)
	}
	return v, nil
}

// fault is the error that a verdict means for a module, nil for a good one. File is where the verdict is kept, "" for
// nowhere.
func (v *verdict) fault(name, file string, l Limits) error {
	again := ". It is tried again at the next start"
	if file != "" {
		again = ". It is tried again when " + file + " is removed, or by a newer version"
	}
	over := func(format string, args ...any) error {
		return fault.New(sandbox.CodeCompileLimit, name, fmt.Errorf(format, args...), "make the module smaller or its functions simpler, or, if you trust it, compile it with --compile-here"+again)
	}
	switch v.Outcome {
	case fine:
		return nil
	case refused:
		return sandbox.Refuse(name, v.Reason)
	case cpuOver:
		return over("compiling it takes more than %s of processor time", l.CPU)
	case memOver:
		return over("compiling it takes more than %d MiB of memory", l.Memory>>20)
	case timeOut:
		return over("compiling it has not come to its end after %s", l.Time.Round(time.Millisecond))
	}
	return fault.New(sandbox.CodeCompileCrash, name, fmt.Errorf("the compiler broke off over it: %s", v.Reason),
		"build the module with another toolchain or other options"+again)
}
