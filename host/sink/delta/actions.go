package delta

import (
	"fmt"
	"maps"
	"strconv"

	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/sink"
)

// actions are the lines of a batch's entry on the newest version, which has been found fit for it.
func (t *Target) actions(id identity, st *staged) ([]delta.Action, error) {
	l, err := t.layoutOf(st)
	if err != nil {
		return nil, err
	}
	now := t.now().UnixMilli()
	_, updated, err := t.marks.published(t.base)
	if err != nil {
		return nil, err
	}
	actions := []delta.Action{{CommitInfo: t.commitInfo(id, st, now)}}
	switch {
	case t.base == nil:
		actions = append(actions, t.newTable(id, st, l, now)...)
	case l.evolved != "":
		if l.protocol != nil {
			actions = append(actions, delta.Action{Protocol: l.protocol})
		}
		meta := t.base.Metadata
		meta.SchemaString = l.evolved
		actions = append(actions, delta.Action{Metadata: &meta})
	}
	txns, err := t.marks.actions(id.batch, id.digest, max(now, updated)) // a clock set back must not make it look old
	if err != nil {
		return nil, err
	}
	actions = append(actions, txns...)
	for _, name := range st.Removed {
		a, live := t.base.File(name)
		if !live {
			return nil, fmt.Errorf("file %s: %w", name, sink.ErrLost)
		}
		actions = append(actions, delta.Action{Remove: a.Remove(max(now, a.ModificationTime), true)})
	}
	for i := range st.Parts {
		p := &st.Parts[i]
		values := p.Values
		if values == nil {
			values = map[string]*string{}
		}
		actions = append(actions, delta.Action{Add: &delta.Add{
			Path: delta.LogPath(p.Path), PartitionValues: values, Size: p.Size, ModificationTime: p.Time, DataChange: true, Stats: p.Stats,
		}})
	}
	return actions, nil
}

func (t *Target) newTable(id identity, st *staged, l *layout, now int64) []delta.Action {
	columns := l.partition
	if columns == nil {
		columns = []string{}
	}
	protocol := delta.NewProtocol(l.table)
	return []delta.Action{{Protocol: &protocol}, {Metadata: &delta.Metadata{
		ID: id.uuid("table"), Format: delta.Format{Provider: "parquet", Options: map[string]string{}}, SchemaString: st.Schema,
		PartitionColumns: columns, Configuration: map[string]string{}, CreatedTime: &now,
	}}}
}

// commitInfo tells people, and this sink after a crash, whose entry it is.
func (t *Target) commitInfo(id identity, st *staged, now int64) *delta.CommitInfo {
	c := &delta.CommitInfo{
		Timestamp: now, Operation: "STREAMING UPDATE", IsolationLevel: "Serializable", EngineInfo: t.cfg.Engine, TxnID: id.uuid("txn"),
		OperationParameters: map[string]string{"outputMode": "Append", "queryId": t.query, "epochId": strconv.FormatInt(int64(id.batch), 10)},
		Tags: map[string]string{
			"wasmill.query": t.query, "wasmill.sink": t.cfg.Sink, "wasmill.batch": strconv.FormatInt(int64(id.batch), 10),
			"wasmill.digest": id.digest, "wasmill.attempt": id.attempt,
		},
	}
	read := int64(-1)
	if t.base != nil {
		read = t.base.Version
	}
	blind := !st.upsert()
	if !blind {
		c.OperationParameters["outputMode"] = "Update"
		read = st.Read
	}
	if read >= 0 {
		c.ReadVersion = &read
	}
	c.IsBlindAppend = &blind
	c.OperationMetrics = metrics(st)
	return c
}

func metrics(st *staged) map[string]string {
	var count, size int64
	for i := range st.Parts {
		count += st.Parts[i].Rows
		size += st.Parts[i].Size
	}
	m := map[string]int64{"numOutputRows": count, "numOutputBytes": size, "numAddedFiles": int64(len(st.Parts)), "numRemovedFiles": int64(len(st.Removed))}
	out := make(map[string]string, len(m))
	for k, v := range maps.All(m) {
		out[k] = strconv.FormatInt(v, 10)
	}
	return out
}
