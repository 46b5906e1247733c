package checkpoint

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The formats are Spark Structured Streaming's offset log and commit log, version 1 (OffsetSeqLog, CommitLog): lines
// joined by LF without a last one. What Spark has no place for stands under keys of our own, which it ignores.
const (
	recordVersion = "v1"
	// formatVersion is the version of our own keys.
	formatVersion = 1
	// maxRecord bounds what is read of a record: a checkpoint may come from anywhere.
	maxRecord = 64 << 20

	confShuffle = "spark.sql.shuffle.partitions" // Spark 4.2 dies when it re-runs a batch without it
	confSources = "wasmill.sources"              // JSON list of names: line i belongs to name i
	confSource  = "wasmill.source."              // + name: what the source's line cannot hold
	confVersion = "wasmill.version"
	confCheck   = "wasmill.check"   // CRC-32C of the record with this value as zeros, 8 hex digits
	confLate    = "wasmill.late"    // by transform, in ms: what decides what is late, where that is not the watermark before
	confRefused = "wasmill.refused" // Refused, as JSON
	confReads   = "wasmill.reads"   // by source: a mark of its settings
	confOrigins = "wasmill.origins" // JSON list of Origin
	confFork    = "wasmill.fork"    // where a forked checkpoint came from

	shufflePartitions = "64" // key groups
	zeroCheck         = "00000000"
	noOffset          = "-"
)

// errFuture marks a record that a newer version wrote: never torn, never skipped.
var errFuture = errors.New("written in a newer format")

type planWire struct {
	WatermarkMS int64             `json:"batchWatermarkMs"`
	TimestampMS int64             `json:"batchTimestampMs"`
	Conf        map[string]string `json:"conf"`
}

type decisionWire struct {
	NextWatermarkMS int64        `json:"nextBatchWatermarkMs"`
	Wasmill         *outcomeWire `json:"wasmill,omitempty"`
}

type outcomeWire struct {
	Version   int                      `json:"version"`
	Check     string                   `json:"check,omitempty"`
	Digest    string                   `json:"digest"`
	Revision  string                   `json:"revision"`
	Semantics int                      `json:"semantics"`
	Inputs    map[string]Digest        `json:"inputs,omitempty"`
	Outputs   map[string]Digest        `json:"outputs,omitempty"`
	State     string                   `json:"state,omitempty"`
	Left      []string                 `json:"timersLeft,omitempty"`
	StateLast *BatchID                 `json:"stateLast,omitempty"` // nil: no batch has changed the state
	Targets   map[string]TargetOutcome `json:"targets,omitempty"`
	Sources   map[string]SourceOutcome `json:"sources,omitempty"`
	Attempt   string                   `json:"attempt"`
	Host      *Host                    `json:"host,omitempty"` // nil in records of versions that did not note it
}

// encodePlan writes the plan with its sources in the order given, which is that of their numbers.
func encodePlan(p *Plan) ([]byte, error) {
	conf := make(map[string]string, len(p.Conf)+len(p.Sources)+4)
	for k, v := range p.Conf {
		if ownKey(k) {
			return nil, fmt.Errorf("conf key %s belongs to the checkpoint", k)
		}
		conf[k] = v
	}
	names := make([]string, len(p.Sources))
	for i, s := range p.Sources {
		names[i] = s.Name
		if s.End.Extra != "" {
			conf[confSource+s.Name] = s.End.Extra
		}
	}
	list, err := marshal(names)
	if err != nil {
		return nil, err
	}
	if len(p.Late) > 0 {
		late, err := marshal(p.Late)
		if err != nil {
			return nil, err
		}
		conf[confLate] = string(late)
	}
	if len(p.Reads) > 0 {
		reads, err := marshal(p.Reads)
		if err != nil {
			return nil, err
		}
		conf[confReads] = string(reads)
	}
	if p.Refused != nil {
		refused, err := marshal(p.Refused)
		if err != nil {
			return nil, err
		}
		conf[confRefused] = string(refused)
	}
	conf[confShuffle] = shufflePartitions
	conf[confVersion] = strconv.Itoa(formatVersion)
	conf[confSources] = string(list)
	conf[confCheck] = zeroCheck
	meta, err := marshal(planWire{WatermarkMS: p.WatermarkMS, TimestampMS: p.TimeMS, Conf: conf})
	if err != nil {
		return nil, err
	}
	lines := []string{recordVersion, string(meta)}
	for _, s := range p.Sources {
		line, err := offsetLine(s)
		if err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	return seal([]byte(strings.Join(lines, "\n")), confCheck), nil
}

func offsetLine(s SourcePosition) (string, error) {
	if s.Name == "" {
		return "", errors.New("a source without a name")
	}
	if s.End.Line == "" {
		return noOffset, nil
	}
	if strings.ContainsAny(s.End.Line, "\r\n") || !validJSON([]byte(s.End.Line)) {
		return "", fmt.Errorf("source %s: its position is not one line of JSON: %.100q", s.Name, s.End.Line)
	}
	return s.End.Line, nil
}

func encodeDecision(d *Decision) ([]byte, error) {
	wire := decisionWire{NextWatermarkMS: d.NextWatermarkMS, Wasmill: &outcomeWire{
		Version: formatVersion, Check: zeroCheck, Digest: d.Digest, Revision: d.Revision, Semantics: d.Semantics,
		Inputs: d.Inputs, Outputs: d.Outputs, State: d.State, Left: d.TimersLeft, StateLast: d.StateLast, Targets: d.Targets, Sources: d.Sources, Attempt: d.Attempt,
	}}
	if d.Host != (Host{}) {
		wire.Wasmill.Host = &d.Host
	}
	text, err := marshal(wire)
	if err != nil {
		return nil, err
	}
	return seal([]byte(recordVersion+"\n"+string(text)), "check"), nil
}

// marshal writes compact JSON with sorted keys and without HTML's escapes.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := stdjson.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal puts the record's checksum in the place of the zeros at the first key of that name.
func seal(record []byte, key string) []byte {
	at := checkAt(record, key)
	copy(record[at:], checksum(record, at))
	return record
}

// checkAt finds where a record's checksum stands, or -1. No text before it can hold the key: quotes in strings are
// escaped, and in a decision only numbers stand before it.
func checkAt(record []byte, key string) int {
	mark := []byte(`"` + key + `":"`)
	i := bytes.Index(record, mark)
	if i < 0 || len(record) < i+len(mark)+len(zeroCheck) {
		return -1
	}
	return i + len(mark)
}

func checksum(record []byte, at int) string {
	sum := crc32.Update(0, castagnoli, record[:at])
	sum = crc32.Update(sum, castagnoli, []byte(zeroCheck))
	sum = crc32.Update(sum, castagnoli, record[at+len(zeroCheck):])
	return fmt.Sprintf("%08x", sum)
}

// noCheck stands in the place of the checksum of a record that a person has edited.
const noCheck = "none"

// verifySeal compares a record of ours with the checksum it carries.
func verifySeal(record []byte, key, value string) error {
	if value == noCheck {
		return nil
	}
	if value == "" {
		return errors.New("it carries no checksum")
	}
	at := checkAt(record, key)
	if at < 0 || !bytes.HasPrefix(record[at:], []byte(value)) || checksum(record, at) != value {
		return errors.New("its checksum does not match its content")
	}
	return nil
}

// decodePlan reads offsets/N. A plan of Spark's has no names: its sources are named by their numbers, and foreign is
// true.
func decodePlan(id BatchID, record []byte) (p *Plan, foreign bool, err error) {
	lines, record, err := splitRecord(record)
	if err != nil {
		return nil, false, err
	}
	var wire planWire
	if err := json.Unmarshal([]byte(lines[1]), &wire); err != nil {
		return nil, false, fmt.Errorf("second line: %w", err)
	}
	if err := knownVersion(wire.Conf[confVersion]); err != nil {
		return nil, false, err
	}
	if ours(wire.Conf) {
		if err := verifySeal(record, confCheck, wire.Conf[confCheck]); err != nil {
			return nil, false, err
		}
	}
	offsets := lines[2:]
	names, foreign, err := sourceNames(wire.Conf, len(offsets))
	if err != nil {
		return nil, false, err
	}
	p = &Plan{Batch: id, TimeMS: wire.TimestampMS, WatermarkMS: wire.WatermarkMS, Conf: make(map[string]string)}
	if text, held := wire.Conf[confLate]; held {
		if err := json.Unmarshal([]byte(text), &p.Late); err != nil {
			return nil, false, fmt.Errorf("conf %s: %w", confLate, err)
		}
	}
	if text, some := wire.Conf[confReads]; some {
		if err := json.Unmarshal([]byte(text), &p.Reads); err != nil {
			return nil, false, fmt.Errorf("conf %s: %w", confReads, err)
		}
	}
	if text, some := wire.Conf[confRefused]; some {
		if err := json.Unmarshal([]byte(text), &p.Refused); err != nil {
			return nil, false, fmt.Errorf("conf %s: %w", confRefused, err)
		}
	}
	for i, line := range offsets {
		end, err := position(line, wire.Conf[confSource+names[i]])
		if err != nil {
			return nil, false, fmt.Errorf("line %d, source %s: %w", i+3, names[i], err)
		}
		p.Sources = append(p.Sources, SourcePosition{Name: names[i], End: end})
	}
	for k, v := range wire.Conf {
		if !ownKey(k) {
			p.Conf[k] = v
		}
	}
	return p, foreign, nil
}

// ours reports whether a plan has any key of ours: one damaged key must not pass a record off as Spark's.
func ours(conf map[string]string) bool {
	for k := range conf {
		if strings.HasPrefix(k, "wasmill.") {
			return true
		}
	}
	return false
}

func ownKey(k string) bool {
	switch k {
	case confShuffle, confSources, confVersion, confCheck, confLate, confReads, confRefused:
		return true
	}
	return strings.HasPrefix(k, confSource)
}

// splitRecord checks the version line and returns all lines, at least two. One LF at the end is accepted, as Spark does.
func splitRecord(record []byte) (lines []string, body []byte, err error) {
	if len(record) == 0 {
		return nil, nil, errors.New("the file is empty")
	}
	body = bytes.TrimSuffix(record, []byte("\n"))
	lines = strings.Split(string(body), "\n")
	if lines[0] != recordVersion {
		n, err := strconv.Atoi(strings.TrimPrefix(lines[0], "v"))
		if err == nil && n > 1 && strings.HasPrefix(lines[0], "v") {
			return nil, nil, fmt.Errorf("%w: %s, where %s is the newest known", errFuture, lines[0], recordVersion)
		}
		return nil, nil, fmt.Errorf("the first line is %.40q and not %s", lines[0], recordVersion)
	}
	if len(lines) < 2 || lines[1] == "" {
		return nil, nil, errors.New("the second line is missing")
	}
	return lines, body, nil
}

func knownVersion(text string) error {
	if text == "" {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return fmt.Errorf("%s is %.40q", confVersion, text)
	}
	if n > formatVersion {
		return fmt.Errorf("%w: %s is %d, where %d is the newest known", errFuture, confVersion, n, formatVersion)
	}
	return nil
}

func sourceNames(conf map[string]string, lines int) (names []string, foreign bool, err error) {
	list, ok := conf[confSources]
	if !ok {
		for i := range lines {
			names = append(names, strconv.Itoa(i))
		}
		return names, true, nil
	}
	if err := json.Unmarshal([]byte(list), &names); err != nil {
		return nil, false, fmt.Errorf("%s: %w", confSources, err)
	}
	if len(names) != lines {
		return nil, false, fmt.Errorf("%d sources are named and %d have a line", len(names), lines)
	}
	seen := make(map[string]bool, len(names))
	for _, n := range names {
		if n == "" || seen[n] {
			return nil, false, fmt.Errorf("%s: the name %q is empty or there twice", confSources, n)
		}
		seen[n] = true
	}
	return names, false, nil
}

func position(line, extra string) (Position, error) {
	if line == noOffset {
		return Position{Extra: extra}, nil
	}
	if !validJSON([]byte(line)) {
		return Position{}, fmt.Errorf("not JSON: %.100q", line)
	}
	return Position{Line: line, Extra: extra}, nil
}

// decodeDecision reads commits/N. One of Spark's has no digests, and foreign is true.
func decodeDecision(id BatchID, record []byte) (d *Decision, foreign bool, err error) {
	if string(bytes.TrimSuffix(record, []byte("\n"))) == recordVersion {
		return &Decision{Batch: id}, true, nil // Spark 2 left out the second line
	}
	lines, record, err := splitRecord(record)
	if err != nil {
		return nil, false, err
	}
	if len(lines) != 2 {
		return nil, false, fmt.Errorf("%d lines instead of 2", len(lines))
	}
	if err := decisionVersion(lines[1]); err != nil {
		return nil, false, err
	}
	var wire decisionWire
	if err := json.Unmarshal([]byte(lines[1]), &wire); err != nil {
		return nil, false, fmt.Errorf("second line: %w", err)
	}
	w := wire.Wasmill
	if w == nil {
		return &Decision{Batch: id, NextWatermarkMS: wire.NextWatermarkMS}, true, nil
	}
	if err := verifySeal(record, "check", w.Check); err != nil {
		return nil, false, err
	}
	d = &Decision{
		Batch: id, NextWatermarkMS: wire.NextWatermarkMS, Digest: w.Digest, Revision: w.Revision, Semantics: w.Semantics,
		Inputs: w.Inputs, Outputs: w.Outputs, State: w.State, TimersLeft: w.Left, StateLast: w.StateLast, Targets: w.Targets, Sources: w.Sources, Attempt: w.Attempt,
	}
	if w.Host != nil {
		d.Host = *w.Host
	}
	return d, false, nil
}

// decisionVersion looks at the version alone: in a newer one the other keys may have another shape.
func decisionVersion(text string) error {
	var wire struct {
		Wasmill *struct {
			Version *int `json:"version"`
		} `json:"wasmill"`
	}
	if err := json.Unmarshal([]byte(text), &wire); err != nil {
		return fmt.Errorf("second line: %w", err)
	}
	if wire.Wasmill == nil {
		return nil
	}
	v := wire.Wasmill.Version
	if v == nil || *v < 1 {
		return errors.New("wasmill.version is missing")
	}
	if *v > formatVersion {
		return fmt.Errorf("%w: wasmill.version is %d, where %d is the newest known", errFuture, *v, formatVersion)
	}
	return nil
}

func validJSON(text []byte) bool { return jsontext.Value(text).IsValid() }
