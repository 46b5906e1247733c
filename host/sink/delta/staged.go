package delta

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/sink"
)

const stagedVersion = 1

// staged is what a decision keeps of a batch. It holds all that publishing needs, as a later process may do it with other
// settings.
type staged struct {
	Version int    `json:"version"`
	Attempt string `json:"attempt"`
	// Table is the id of the table that it was staged for; empty when there was none yet.
	Table string `json:"table,omitempty"`
	// Read is the version of the table that it was staged on, -1 when there was none yet.
	Read int64 `json:"read"`
	// Schema is that of the rows, as Delta writes one; Partition are the columns that are not in the files.
	Schema     string   `json:"schema"`
	Partition  []string `json:"partition"`
	AddColumns bool     `json:"addColumns,omitempty"`
	// TableSchema is the table's own, which the files of an upsert have. Empty for appends.
	TableSchema string `json:"tableSchema,omitempty"`
	Parts       []part `json:"parts"`
	// Removed are the files that an upsert takes away: decoded paths, relative to the table.
	Removed []string `json:"removed,omitempty"`
}

func (st *staged) upsert() bool { return st.TableSchema != "" }

// part is one data file.
type part struct {
	Path   string             `json:"path"` // relative to the table
	Size   int64              `json:"size"`
	Rows   int64              `json:"rows"`
	Time   int64              `json:"time"` // milliseconds since 1970
	SHA256 string             `json:"sha256"`
	Values map[string]*string `json:"values,omitempty"` // of the partition
	Stats  string             `json:"stats,omitempty"`
}

var (
	attemptForm = regexp.MustCompile(`^[0-9a-f]{8}$`)
	partForm    = regexp.MustCompile(`^part-[0-9]{5,}-([^-/]{8})-([0-9]{1,18})-([0-9a-f]{16})\.c000(?:\.zstd|\.snappy|\.gz|\.gzip)?\.parquet$`)
)

// parseStaged reads a decision's record of a batch and trusts none of its names.
func parseStaged(s sink.Staged) (*staged, error) {
	var st staged
	if err := json.Unmarshal(s, &st); err != nil {
		return nil, fmt.Errorf("the record of what was staged cannot be read: %w", err)
	}
	if st.Version != stagedVersion {
		return nil, fmt.Errorf("the record of what was staged has format %d, this program knows %d", st.Version, stagedVersion)
	}
	if !attemptForm.MatchString(st.Attempt) || st.Read < -1 || (st.Read < 0) != (st.Table == "") {
		return nil, fmt.Errorf("the record of what was staged names attempt %q at version %d of table %q", st.Attempt, st.Read, st.Table)
	}
	for _, p := range st.Parts {
		if !inside(p.Path) || !partForm.MatchString(path.Base(p.Path)) || len(p.SHA256) != 64 {
			return nil, fmt.Errorf("the record of what was staged names %q", p.Path)
		}
	}
	for _, p := range st.Removed {
		if !inside(p) {
			return nil, fmt.Errorf("the record of what was staged removes %q", p)
		}
	}
	return &st, nil
}

func inside(p string) bool {
	return p != "" && p != "." && path.Clean(p) == p && !path.IsAbs(p) && p != ".." && !strings.HasPrefix(p, "../")
}

// identity is what sets one attempt at a batch apart from all others.
type identity struct {
	app     string
	batch   checkpoint.BatchID
	digest  string
	attempt string
}

func (i identity) hash(what string) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%s\n%d\n%s\n%s\n%s\n", i.app, i.batch, i.digest, i.attempt, what))
}

// uuid makes an id of the identity: the same whenever the same batch is published, so that an entry is known again.
func (i identity) uuid(what string) string {
	h := i.hash(what)
	h[6], h[8] = h[6]&0x0f|0x80, h[8]&0x3f|0x80 // version 8, for ids of one's own making (RFC 9562)
	x := hex.EncodeToString(h[:16])
	return x[:8] + "-" + x[8:12] + "-" + x[12:16] + "-" + x[16:20] + "-" + x[20:]
}

// partName names data file number n.
func (i identity) partName(tag string, n int, ext string) string {
	h := i.hash(fmt.Sprintf("part %d", n))
	return fmt.Sprintf("part-%05d-%s-%d-%s.c000.%s", n, tag, i.batch, hex.EncodeToString(h[:8]), ext)
}
