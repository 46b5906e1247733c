// Package kit is the conformance kit of ABI 1: small guests, good and bad, and what a host must answer to each.
//
// The data is for everybody: kit.json, the modules in wasm/ and SHA256SUMS need no Go; README.md explains them. This
// package loads them and can drive a host through them (Check). It knows nothing of WebAssembly engines and must not: the
// host under test is behind the interface Host.
package kit

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmill/wasmill/abi"
)

//go:embed kit.json SHA256SUMS wasm
var files embed.FS

// What a case may need: a host that has not got it skips the case.
const (
	NeedsFuel       = "fuel"       // the guest never ends by itself
	NeedsValidation = "validation" // the host checks modules itself instead of leaving it to its engine
)

// Case is one module and what becomes of it.
type Case struct {
	Name    string          `json:"name"` // unique
	File    string          `json:"file"` // in wasm/; Name + ".wasm" when empty
	About   string          `json:"about"`
	Needs   []string        `json:"needs"`
	Sidecar json.RawMessage `json:"sidecar"` // the text of <module>.json, nil when there is none
	Config  json.RawMessage `json:"config"`  // Load makes it canonical, and {} when there is none
	Limits  Limits          `json:"limits"`
	Refuse  *Refuse         `json:"refuse"` // nil: the module starts
	Logs    []Log           `json:"logs"`   // what it logs while it starts; nil: not looked at
	Runs    []Run           `json:"runs"`   // each on a fresh instance

	Wasm   []byte `json:"-"`
	SHA256 string `json:"-"`
}

// Limits are set where a case depends on them; 0 stands for the host's default.
type Limits struct {
	Memory int64 `json:"memory"` // bytes
	Output int64 `json:"output"` // bytes
}

// Refuse says when and why a module is not taken.
type Refuse struct {
	At       string       `json:"at"`       // "compile": without running anything of it; "start"; "": either
	Word     string       `json:"word"`     // the reason, from the list in README.md
	Trap     abi.TrapName `json:"trap"`     // with the word "trap"
	Mentions []string     `json:"mentions"` // what the message must name
}

// Log is one line a guest logged.
type Log struct {
	Level int   `json:"level"`
	Text  Bytes `json:"text"`
}

// String is the level and the text.
func (l Log) String() string { return fmt.Sprintf("%d %q", l.Level, l.Text) }

// Run is one lane of one batch.
type Run struct {
	Name   string  `json:"name"`
	Keyed  *Keyed  `json:"keyed"`  // nil: the stage has no state
	Frames []Frame `json:"frames"` // Load fills in the standard lane where there are none
	Expect Expect  `json:"expect"`
	Times  Times   `json:"times"` // where they differ from the header's

	Header abi.FrameHeader `json:"-"` // what every frame says, but for Flags, Chunk and Fuel
}

// Times are in microseconds; nil stands for those of the header.
type Times struct {
	Batch     *int64 `json:"batch"`
	Late      *int64 `json:"late_watermark"`
	Watermark *int64 `json:"watermark"`
}

// Keyed is the state that a run begins with, as earlier batches have left it, and whose keys are the lane's.
type Keyed struct {
	Lane    int     `json:"lane"`
	Lanes   int     `json:"lanes"`   // 0 stands for 1
	Follows bool    `json:"follows"` // the state is what the run before has left, with what stands here added
	Entries []Entry `json:"entries"`
	Timers  []Timer `json:"timers"`
}

// Entry is one entry of a table.
type Entry struct {
	Table  uint16 `json:"table"`
	Key    Bytes  `json:"key"`
	Sub    Bytes  `json:"sub"`
	Value  Bytes  `json:"value"`
	Expiry int64  `json:"expiry"` // microseconds, 0 for none
}

// Timer is one timer.
type Timer struct {
	Domain uint8 `json:"domain"`
	At     int64 `json:"at"` // microseconds
	Key    Bytes `json:"key"`
	Sub    Bytes `json:"sub"`
}

// Frame is one call of wasmill_batch. The first frame of a run has the flag first.
type Frame struct {
	Last bool `json:"last"`
	// Due stands for the frames of the timers that are due: none, one or two, one for each domain.
	Due     bool     `json:"due"`
	Records []Record `json:"records"`
}

// Expect is what a run comes to. At most one of Trap, Status and Fails is set; then Records is not looked at.
type Expect struct {
	Records  []Record     `json:"records"` // in the order of emission, over all frames
	Trap     abi.TrapName `json:"trap"`
	Status   int32        `json:"status"`
	Fails    bool         `json:"fails"`    // the call fails in a way that is no trap of the guest's code
	Frame    int          `json:"frame"`    // which frame fails
	Text     Bytes        `json:"text"`     // the error text that comes with Status
	Progress *uint32      `json:"progress"` // nil: unset
	Logs     []Log        `json:"logs"`     // nil: not looked at
	State    *After       `json:"state"`    // nil: not looked at
}

// After is all of the state that a run leaves.
type After struct {
	Entries []Entry `json:"entries"` // in the order of table, key and sub
	Timers  []Timer `json:"timers"`  // in the order in which they fire
}

// Failing says whether the run is to fail.
func (e *Expect) Failing() bool { return e.Trap != "" || e.Status != 0 || e.Fails }

// Record is a record on either side. On input an absent Index is the record's number in its lane and an absent Offset the
// Index; on output an absent Index stands for none.
type Record struct {
	SameAs    *uint32  `json:"same_as"` // output: as the input with this index, but for Port
	EventTime *int64   `json:"event_time"`
	Offset    *int64   `json:"offset"`
	Key       *Bytes   `json:"key"`
	Value     *Bytes   `json:"value"`
	Headers   []Header `json:"headers"`
	Partition int32    `json:"partition"`
	Code      int32    `json:"code"` // output: of a dead letter or a fail
	Port      uint16   `json:"port"`
	Input     uint16   `json:"input"`
	Index     *uint32  `json:"index"`
	Kind      abi.Kind `json:"kind"`
}

// Header is one header of a record; a nil Value is null.
type Header struct {
	Name  Bytes  `json:"name"`
	Value *Bytes `json:"value"`
}

// Bytes is a string in kit.json, or {"hex": "00ff"}, or {"repeat": "ab", "count": 3}.
type Bytes []byte

// UnmarshalJSON reads one of the three forms.
func (b *Bytes) UnmarshalJSON(text []byte) error {
	if text[0] == '"' {
		var s string
		err := json.Unmarshal(text, &s)
		*b = Bytes(s)
		return err
	}
	var form struct {
		Hex    string
		Repeat string
		Count  int
	}
	if err := strict(text, &form); err != nil {
		return err
	}
	if form.Count != 0 {
		*b = bytes.Repeat([]byte(form.Repeat), form.Count)
		return nil
	}
	var err error
	*b, err = hex.DecodeString(form.Hex)
	return err
}

// document is kit.json.
type document struct {
	Version  int
	Header   header
	Standard []Frame // the lane of a run that names no frames
	Cases    []Case
}

type header struct {
	Batch         uint64    `json:"batch"`
	BatchTime     int64     `json:"batch_time"`
	LateWatermark int64     `json:"late_watermark"`
	Watermark     int64     `json:"watermark"`
	Seed          [2]string `json:"seed"` // 16 hex digits each
	Lane          uint32    `json:"lane"`
}

// Load reads the whole kit, each module with it, and checks it against SHA256SUMS. The caller may change what it gets.
func Load() ([]Case, error) {
	cases, err := parse()
	if err != nil {
		return nil, fmt.Errorf("load the kit: %w", err)
	}
	return cases, nil
}

func parse() ([]Case, error) {
	text, err := files.ReadFile("kit.json")
	if err != nil {
		return nil, err
	}
	var doc document
	if err := strict(text, &doc); err != nil {
		return nil, fmt.Errorf("kit.json: %w", err)
	}
	h, err := doc.Header.abi()
	if err != nil {
		return nil, err
	}
	sums, err := digests()
	if err != nil {
		return nil, err
	}
	for i := range doc.Cases {
		if err := doc.Cases[i].fill(doc.Standard, h, sums); err != nil {
			return nil, fmt.Errorf("case %s: %w", doc.Cases[i].Name, err)
		}
	}
	return doc.Cases, nil
}

func (h header) abi() (abi.FrameHeader, error) {
	out := abi.FrameHeader{
		Batch: h.Batch, BatchTime: h.BatchTime, LateWatermark: h.LateWatermark, Watermark: h.Watermark, Lane: h.Lane,
	}
	for i, s := range h.Seed {
		var err error
		if out.Seed[i], err = strconv.ParseUint(s, 16, 64); err != nil {
			return out, fmt.Errorf("seed: %w", err)
		}
	}
	return out, nil
}

func (c *Case) fill(standard []Frame, h abi.FrameHeader, sums map[string]string) error {
	if c.File == "" {
		c.File = c.Name + ".wasm"
	}
	if len(c.Config) == 0 {
		c.Config = json.RawMessage("{}")
	}
	var err error
	if c.Config, err = abi.CanonicalJSON(c.Config); err != nil {
		return err
	}
	if c.Wasm, err = files.ReadFile(path.Join("wasm", c.File)); err != nil {
		return err
	}
	sum := sha256.Sum256(c.Wasm)
	c.SHA256 = hex.EncodeToString(sum[:])
	if sums[c.File] != c.SHA256 {
		return fmt.Errorf("%s has sha256 %s, SHA256SUMS says %q: run build.sh", c.File, c.SHA256, sums[c.File])
	}
	for i := range c.Runs {
		c.Runs[i].Header = c.Runs[i].Times.header(h)
		if c.Runs[i].Frames == nil {
			c.Runs[i].Frames = slices.Clone(standard)
		}
	}
	return nil
}

// header is h with the times that differ.
func (t *Times) header(h abi.FrameHeader) abi.FrameHeader {
	for at, time := range map[*int64]*int64{&h.BatchTime: t.Batch, &h.LateWatermark: t.Late, &h.Watermark: t.Watermark} {
		if time != nil {
			*at = *time
		}
	}
	return h
}

// digests reads SHA256SUMS, in the format of sha256sum.
func digests() (map[string]string, error) {
	text, err := files.ReadFile("SHA256SUMS")
	if err != nil {
		return nil, err
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(text)) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok {
			return nil, fmt.Errorf("SHA256SUMS: bad line %q", line)
		}
		sums[strings.TrimPrefix(name, "wasm/")] = sum
	}
	return sums, nil
}

func strict(text []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("more than one JSON text")
	}
	return nil
}
