package delta

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"regexp"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/sink"
)

var digestForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

// marks are the txn actions by which a sink's progress stands in a table's log.
type marks struct{ app string }

func marksOf(query, sinkName string) marks { return marks{app: query + "/" + sinkName} }

func (m marks) half(i int) string { return fmt.Sprintf("%s/digest.%d", m.app, i) }

// actions are those of one batch. The digest must have the form of one.
func (m marks) actions(batch checkpoint.BatchID, digest string, nowMS int64) ([]delta.Action, error) {
	raw, err := hex.DecodeString(digest)
	if err != nil || len(raw) != 16 {
		return nil, fmt.Errorf("%q is no batch digest", digest)
	}
	txn := func(app string, version int64) delta.Action {
		return delta.Action{Txn: &delta.Txn{AppID: app, Version: version, LastUpdated: &nowMS}}
	}
	return []delta.Action{
		txn(m.app, int64(batch)),
		txn(m.half(0), int64(binary.BigEndian.Uint64(raw))),
		txn(m.half(1), int64(binary.BigEndian.Uint64(raw[8:]))),
	}, nil
}

// published reads them back. What has expired for others still tells what this sink has published.
func (m marks) published(s *delta.Snapshot) (p sink.Published, updatedMS int64, err error) {
	p = sink.Published{Batch: checkpoint.NoBatch}
	if s == nil {
		return p, 0, nil
	}
	at, ok := find(s, m.app)
	if !ok {
		return p, 0, nil
	}
	var raw [16]byte
	for i := range 2 {
		half, ok := find(s, m.half(i))
		if !ok {
			return p, 0, fmt.Errorf("the log says that batch %d of %s is published, but not with which digest", at.Version, m.app)
		}
		binary.BigEndian.PutUint64(raw[8*i:], uint64(half.Version))
	}
	if at.LastUpdated != nil {
		updatedMS = *at.LastUpdated
	}
	return sink.Published{Batch: checkpoint.BatchID(at.Version), Digest: hex.EncodeToString(raw[:])}, updatedMS, nil
}

func find(s *delta.Snapshot, app string) (delta.Txn, bool) {
	if t, ok := s.Txn(app); ok {
		return t, true
	}
	return s.ExpiredTxn(app)
}
