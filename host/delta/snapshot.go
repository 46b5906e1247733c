package delta

import (
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/rows"
)

// Snapshot is a table at one version. It is never changed. TimestampMS is the in-commit timestamp of the version, or else the
// time that its writer put down, in milliseconds since 1970; 0 when it is not known.
type Snapshot struct {
	Version     int64
	Protocol    Protocol
	Metadata    Metadata
	TimestampMS int64

	place string
	now   int64 // milliseconds since 1970, when the snapshot was taken
	state *state
}

func (l *Log) snapshot(s *state) *Snapshot {
	return &Snapshot{
		Version: s.version, Protocol: *s.protocol, Metadata: *s.metadata, TimestampMS: s.timestamp,
		place: l.dir, now: l.now().UnixMilli(), state: s,
	}
}

// The table properties that are read here.
const (
	propTxnRetention    = "delta.setTransactionRetentionDuration"
	propFileRetention   = "delta.deletedFileRetentionDuration"
	propInCommit        = "delta.enableInCommitTimestamps"
	propCheckpoints     = "delta.checkpointInterval"
	propAppendOnly      = "delta.appendOnly"
	propChangeDataFeed  = "delta.enableChangeDataFeed"
	propColumnMapping   = "delta.columnMapping.mode"
	propStatsColumns    = "delta.dataSkippingNumIndexedCols"
	propStatsNamed      = "delta.dataSkippingStatsColumns"
	prefixConstraint    = "delta.constraints."
	defaultFileLifetime = 7 * 24 * time.Hour
)

// Txn returns how far an application has come. One that has expired by the table's property
// delta.setTransactionRetentionDuration is not there, as for other readers.
func (s *Snapshot) Txn(appID string) (Txn, bool) {
	t, ok := s.state.txns.get(appID)
	if !ok || s.expired(t) {
		return Txn{}, false
	}
	return t, true
}

// AppIDs lists the applications that have a txn, also an expired one, whose names begin with a prefix, in the order of the names.
func (s *Snapshot) AppIDs(prefix string) (ids []string) {
	for id := range s.state.txns.all() {
		if strings.HasPrefix(id, prefix) {
			ids = append(ids, id)
		}
	}
	return ids
}

// ExpiredTxn returns an application's txn that stands in the log but has expired.
func (s *Snapshot) ExpiredTxn(appID string) (Txn, bool) {
	t, ok := s.state.txns.get(appID)
	if !ok || !s.expired(t) {
		return Txn{}, false
	}
	return t, true
}

// expired follows Spark, which also drops a txn without lastUpdated once there is a retention.
func (s *Snapshot) expired(t Txn) bool {
	keep, set := s.TxnRetention()
	return set && (t.LastUpdated == nil || *t.LastUpdated <= s.now-keep.Milliseconds())
}

// TxnRetention returns how long the table keeps a txn that is not renewed; without the property, for ever. A property that
// cannot be read is taken for none.
func (s *Snapshot) TxnRetention() (d time.Duration, set bool) {
	d, err := ParseInterval(s.Metadata.Configuration[propTxnRetention])
	return d, err == nil
}

// fileRetention is how long a removed file is remembered.
func (m *Metadata) fileRetention() time.Duration {
	d, err := ParseInterval(m.Configuration[propFileRetention])
	if err != nil {
		return defaultFileLifetime
	}
	return d
}

// Domain returns the configuration of a domain.
func (s *Snapshot) Domain(name string) (string, bool) {
	d, ok := s.state.domains.get(name)
	return d.Configuration, ok
}

// Files yields the live files in byte order of their decoded paths. They are not to be changed.
func (s *Snapshot) Files() iter.Seq[*Add] {
	return func(yield func(*Add) bool) {
		for _, a := range s.state.files.all() {
			if !yield(a) {
				return
			}
		}
	}
}

// File returns the live file, without deletion vector, with that path relative to the table.
func (s *Snapshot) File(path string) (*Add, bool) { return s.state.files.get(path) }

// NumFiles returns the number of live files.
func (s *Snapshot) NumFiles() int { return s.state.files.len() }

// Schema returns the table's columns, partition columns included, and the names of these in their order.
func (s *Snapshot) Schema() (*rows.Schema, []string, error) {
	schema, err := ParseSchema(s.Metadata.SchemaString)
	if err == nil {
		err = CheckPartition(schema, s.Metadata.PartitionColumns)
	}
	if err != nil {
		return nil, nil, fault.New(CodeSchema, s.place, err, "use a table whose columns are of other types")
	}
	return schema, s.Metadata.PartitionColumns, nil
}

// CheckpointInterval returns after how many versions the table wants a checkpoint, or def.
func (s *Snapshot) CheckpointInterval(def int) int {
	n, err := strconv.Atoi(s.Metadata.Configuration[propCheckpoints])
	if err != nil || n < 1 {
		return def
	}
	return n
}

// InCommitTimestamps reports whether each commit of the table carries its own time.
func (m *Metadata) InCommitTimestamps() bool { return isTrue(m.Configuration[propInCommit]) }

func isTrue(s string) bool { return strings.EqualFold(s, "true") }

var units = map[string]time.Duration{
	"week": 7 * 24 * time.Hour, "day": 24 * time.Hour, "hour": time.Hour, "minute": time.Minute, "second": time.Second,
	"millisecond": time.Millisecond, "microsecond": time.Microsecond,
}

// ParseInterval reads a duration as table properties have it: "interval 1 week 2 days", the first word optional. Months and
// years have no fixed length and are refused, as by Spark.
func ParseInterval(s string) (time.Duration, error) {
	words := strings.Fields(strings.ToLower(s))
	if len(words) > 0 && words[0] == "interval" {
		words = words[1:]
	}
	if len(words) == 0 || len(words)%2 != 0 {
		return 0, fmt.Errorf("interval %q: write it as in \"interval 2 days 12 hours\"", s)
	}
	var d time.Duration
	for i := 0; i < len(words); i += 2 {
		n, err := strconv.ParseInt(words[i], 10, 64)
		unit, ok := units[strings.TrimSuffix(words[i+1], "s")]
		if err != nil || !ok {
			return 0, fmt.Errorf("interval %q: %q %q is not a number of a unit from weeks to microseconds", s, words[i], words[i+1])
		}
		part := time.Duration(n) * unit
		if n != 0 && part/time.Duration(n) != unit {
			return 0, fmt.Errorf("interval %q: %w", s, errTooLong)
		}
		d += part
	}
	return d, nil
}

var errTooLong = errors.New("longer than can be counted")
