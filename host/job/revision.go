package job

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/wasmill/wasmill/abi"
)

// RevisionInputs is what a revision needs and the job file does not hold.
type RevisionInputs struct {
	ABI       int // version of the contract with transforms
	Semantics int // of the host
	Groups    int // key groups
	// Modules holds what each transform runs, by the transform's name.
	Modules map[string]ModuleInputs
}

// ModuleInputs is what is known of a module once it has started.
type ModuleInputs struct {
	SHA256   string // of the module with its sidecar, 64 hex digits
	Image    string // digest of what its start left, 64 hex digits
	Manifest *abi.Manifest
}

// The members of a revision, in JSON. Optional members are left out, so that a field added to the job file changes no
// revision that does not use it.
type revision struct {
	ABI        int                       `json:"abi"`
	Semantics  int                       `json:"semantics"`
	Lanes      int                       `json:"lanes"`
	Groups     int                       `json:"groups"`
	Sources    map[string]revisionSource `json:"sources"`
	Transforms []revisionTransform       `json:"transforms"`
	Sinks      []revisionSink            `json:"sinks"`
	Errors     revisionErrors            `json:"errors"`
}

type revisionSource struct {
	Format      string             `json:"format"`
	Compression string             `json:"compression,omitempty"`
	CSV         *revisionCSV       `json:"csv,omitempty"`
	Generator   *revisionGenerator `json:"generator,omitempty"`
	Isolation   string             `json:"isolation,omitempty"` // "" is read_committed
	Decode      *revisionFormats   `json:"decode,omitempty"`    // nil: raw bytes
	Attach      []string           `json:"attach,omitempty"`
	EventTime   *revisionEventTime `json:"eventTime"`
}

type revisionCSV struct {
	Header    bool     `json:"header"`
	Delimiter string   `json:"delimiter"`
	Columns   []string `json:"columns,omitempty"`
}

type revisionGenerator struct {
	Kind    string           `json:"kind"`
	Seed    uint64           `json:"seed"`
	Nexmark *revisionNexmark `json:"nexmark,omitempty"`
}

type revisionNexmark struct {
	Only       string `json:"only,omitempty"`
	Flat       bool   `json:"flat"`
	EventRate  int64  `json:"eventRate"`
	BaseMS     int64  `json:"baseTime"`
	OutOfOrder int64  `json:"outOfOrder"`
}

type revisionEventTime struct {
	JSON       string `json:"json,omitempty"` // "" is the source's own timestamp
	Unit       string `json:"unit,omitempty"`
	LatenessMS int64  `json:"latenessMs"`
	IdleMS     int64  `json:"idleMs,omitempty"`
	Complete   bool   `json:"complete,omitempty"`
}

type revisionTransform struct {
	Name     string            `json:"name"`
	From     []string          `json:"from"`
	KeyBy    []*revisionKeyBy  `json:"keyBy"` // one for each entry of from; null when no entry has one
	Module   string            `json:"module"`
	Manifest *revisionManifest `json:"manifest"`
	Image    string            `json:"image"`
	Config   json.RawMessage   `json:"config"`
	Limits   revisionLimits    `json:"limits"`
}

type revisionKeyBy struct {
	Key    bool     `json:"key,omitempty"`
	Header string   `json:"header,omitempty"`
	JSON   []string `json:"json,omitempty"`
}

// revisionManifest leaves the manifest's name and version out: they are for people.
type revisionManifest struct {
	Inputs  []revisionPort `json:"inputs"`
	Outputs []revisionPort `json:"outputs"`
	Tables  []string       `json:"tables,omitempty"`
	Types   []string       `json:"types,omitempty"` // of the tables; nil when all are bytes
	// StateConfig are the members of the config that state depends on.
	StateConfig []string `json:"stateConfig,omitempty"`
	Delay       []string `json:"delay,omitempty"`
}

type revisionPort struct {
	Name    string   `json:"name"`
	Content string   `json:"content,omitempty"`
	Fields  []string `json:"fields,omitempty"`
	Updates bool     `json:"updates,omitempty"`
}

type revisionLimits struct {
	Memory     int64  `json:"memory"`
	FuelCall   uint64 `json:"fuelCall"`
	FuelRecord uint64 `json:"fuelRecord"`
	Depth      int    `json:"depth"`
	Output     int64  `json:"output"`
}

type revisionSink struct {
	Name        string           `json:"name"`
	From        []string         `json:"from"`
	Mode        string           `json:"mode"`
	Format      string           `json:"format"`
	Schema      []revisionColumn `json:"schema"`
	PartitionBy []string         `json:"partitionBy"`
	Key         []string         `json:"key,omitempty"` // of a table
	Kafka       *revisionTopics  `json:"kafka,omitempty"`
	Encode      *revisionFormats `json:"encode,omitempty"` // nil: raw bytes
}

// revisionTopics is what makes a record a misfit of a kafka sink. Names of topics are not stored.
type revisionTopics struct {
	MaxMessage  int64  `json:"maxMessage"`
	TopicHeader string `json:"topicHeader,omitempty"`
	Optional    bool   `json:"optional,omitempty"` // the header: a record without it has a topic to go to
	Topics      string `json:"topics,omitempty"`   // sha256 of the names that the header may hold
}

type revisionColumn struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

type revisionErrors struct {
	Policy      string `json:"policy"`
	DeadLetters string `json:"deadLetters,omitempty"`
	Max         int64  `json:"max"`
}

// Revision returns the canonical JSON of all that determines the job's output, and its sha256 in hex. Two jobs with the
// same revision give the same output for the same input. Paths, connections, secrets, triggers, batch limits and
// limits of the log are not in it.
func (j *Job) Revision(in RevisionInputs) (canonical []byte, digest string, err error) {
	r := revision{
		ABI: in.ABI, Semantics: in.Semantics, Lanes: j.Lanes, Groups: in.Groups,
		Sources:    make(map[string]revisionSource, len(j.Sources)),
		Transforms: make([]revisionTransform, 0, len(j.Transforms)),
		Sinks:      make([]revisionSink, 0, len(j.Sinks)),
		Errors:     revisionErrors(j.Errors),
	}
	for i := range j.Sources {
		r.Sources[j.Sources[i].Name] = reviseSource(&j.Sources[i])
	}
	for i := range j.Transforms {
		t := &j.Transforms[i]
		m, ok := in.Modules[t.Name]
		if !ok {
			return nil, "", fmt.Errorf("revision of %s: no module for transform %q", j.Name, t.Name)
		}
		r.Transforms = append(r.Transforms, reviseTransform(t, m))
	}
	for i := range j.Sinks {
		r.Sinks = append(r.Sinks, reviseSink(&j.Sinks[i]))
	}
	canonical, err = abi.AppendCanonical(nil, r)
	if err != nil {
		return nil, "", fmt.Errorf("revision of %s: %w", j.Name, err)
	}
	sum := sha256.Sum256(canonical)
	return canonical, hex.EncodeToString(sum[:]), nil
}

func reviseSource(s *Source) revisionSource {
	var r revisionSource
	r.Attach = s.Attach
	if f := s.Files; f != nil {
		r.Format = f.Format
		if f.Compression != "auto" {
			r.Compression = f.Compression
		}
		if f.Format == "csv" {
			r.CSV = &revisionCSV{Header: f.CSV.Header, Delimiter: string(rune(f.CSV.Delimiter)), Columns: f.CSV.Columns}
		}
	}
	if g := s.Generator; g != nil {
		r.Format = "generator"
		r.Generator = &revisionGenerator{Kind: g.Kind, Seed: g.Seed, Nexmark: (*revisionNexmark)(g.Nexmark)}
	}
	if s.Delta != nil {
		r.Format = "delta"
	}
	if k := s.Kafka; k != nil {
		r.Format, r.Decode = "kafka", reviseFormats(k.Formats, nil, nil)
		if k.Isolation != "read_committed" {
			r.Isolation = k.Isolation
		}
	}
	if e := s.EventTime; e != nil {
		r.EventTime = &revisionEventTime{
			JSON: e.JSON, Unit: e.Unit, LatenessMS: e.Lateness.Milliseconds(), IdleMS: e.Idle.Milliseconds(), Complete: e.Complete,
		}
	}
	return r
}

func reviseTransform(t *Transform, m ModuleInputs) revisionTransform {
	r := revisionTransform{
		Name: t.Name, From: refs(t.From), Module: m.SHA256, Manifest: reviseManifest(m.Manifest), Image: m.Image,
		Config: t.Config, Limits: reviseLimits(&t.Limits),
	}
	for i, in := range t.From {
		if in.KeyBy == nil {
			continue
		}
		if r.KeyBy == nil {
			r.KeyBy = make([]*revisionKeyBy, len(t.From))
		}
		k := revisionKeyBy(*in.KeyBy)
		r.KeyBy[i] = &k
	}
	return r
}

// reviseLimits leaves out what changes no output.
func reviseLimits(l *Limits) revisionLimits {
	return revisionLimits{Memory: l.Memory, FuelCall: l.FuelCall, FuelRecord: l.FuelRecord, Depth: l.Depth, Output: l.Output}
}

func reviseManifest(m *abi.Manifest) *revisionManifest {
	if m == nil {
		return nil
	}
	r := &revisionManifest{Inputs: []revisionPort{}, Outputs: []revisionPort{}}
	for _, p := range m.Inputs {
		r.Inputs = append(r.Inputs, revisionPort{Name: p.Name, Content: p.Content, Fields: p.Fields})
	}
	for _, p := range m.Outputs {
		r.Outputs = append(r.Outputs, revisionPort{Name: p.Name, Content: p.Content, Updates: p.Updates})
	}
	r.StateConfig, r.Delay = m.StateConfig, m.Delay
	typed := false
	for _, t := range m.Tables {
		r.Tables = append(r.Tables, t.Name)
		r.Types = append(r.Types, t.Type)
		typed = typed || t.Type != abi.TableBytes
	}
	if !typed {
		r.Types = nil
	}
	return r
}

// typeOf returns the type of the manifest's table i.
func (m *revisionManifest) typeOf(i int) string {
	if i < len(m.Types) {
		return m.Types[i]
	}
	return abi.TableBytes
}

func reviseSink(s *Sink) revisionSink {
	r := revisionSink{Name: s.Name, From: refs(s.From), Mode: s.Mode}
	for _, c := range s.Columns() {
		r.Schema = append(r.Schema, revisionColumn{Name: c.Name, Type: c.Type.String()})
	}
	switch {
	case s.Files != nil:
		r.Format, r.PartitionBy = s.Files.Format, s.Files.PartitionBy
	case s.Delta != nil:
		r.Format, r.PartitionBy, r.Key = "delta", s.Delta.PartitionBy, s.Delta.Key
	case s.SQL != nil:
		r.Format, r.Key = s.SQL.Kind, s.SQL.Key
	case s.Stdout != nil:
		r.Format = s.Stdout.Format
	case s.Kafka != nil:
		r.Format, r.Kafka = "kafka", reviseTopics(s.Kafka)
		r.Encode = reviseFormats(s.Kafka.Formats, s.Kafka.Schema, s.Kafka.KeySchema)
	}
	return r
}

func reviseTopics(k *KafkaSink) *revisionTopics {
	r := &revisionTopics{MaxMessage: k.MaxMessage, TopicHeader: k.TopicHeader}
	if k.TopicHeader == "" {
		return r
	}
	names := slices.Clone(k.Topics)
	if r.Optional = k.Topic != ""; r.Optional {
		names = append(names, k.Topic)
	}
	slices.Sort(names)
	r.Topics = digestOf(slices.Compact(names))
	return r
}

func refs(inputs []Input) []string {
	r := make([]string, len(inputs))
	for i, in := range inputs {
		r[i] = in.Ref()
	}
	return r
}
