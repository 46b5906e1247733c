package cli

import (
	"time"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/engine"
)

// sparkOperator is what a stage with keys did to its state, as Spark's progress says it of a stateful operator.
type sparkOperator struct {
	OperatorName string `json:"operatorName"`
	// NumRowsTotal is -1: the rows are not counted, as what a batch puts may be there already without having been read. The member
	// is there for readers of Spark's progress, which ask for it.
	NumRowsTotal              int64            `json:"numRowsTotal"`
	NumRowsUpdated            int64            `json:"numRowsUpdated"`
	AllUpdatesTimeMS          int64            `json:"allUpdatesTimeMs"`
	NumRowsRemoved            int64            `json:"numRowsRemoved"`
	AllRemovalsTimeMS         int64            `json:"allRemovalsTimeMs"`
	CommitTimeMS              int64            `json:"commitTimeMs"`
	MemoryUsedBytes           int64            `json:"memoryUsedBytes"`
	NumRowsDroppedByWatermark int64            `json:"numRowsDroppedByWatermark"`
	NumShufflePartitions      int64            `json:"numShufflePartitions"`
	NumStateStoreInstances    int64            `json:"numStateStoreInstances"`
	CustomMetrics             map[string]int64 `json:"customMetrics,omitempty"`
}

// operators lists the stages with keys in topological order. Updates are made while the stage runs, so their time is not
// told apart: it is 0.
func (p *jsonProgress) operators(s *engine.BatchStats) []sparkOperator {
	out := []sparkOperator{}
	if p.state == nil {
		return out
	}
	stats, known := p.state.stats()
	for i := range s.Stages {
		st := &s.Stages[i]
		if !p.state.keyed[st.Name] {
			continue
		}
		op := sparkOperator{
			OperatorName: st.Name, NumRowsTotal: -1, NumRowsUpdated: st.Updated, NumRowsRemoved: st.Removed,
			CommitTimeMS: s.Steps[engine.StepSeal].Milliseconds(), MemoryUsedBytes: st.State, NumRowsDroppedByWatermark: p.state.dropped(st),
			NumShufflePartitions: abi.KeyGroups, NumStateStoreInstances: int64(p.state.lanes),
			CustomMetrics: map[string]int64{"timersFired": st.Timers},
		}
		if known {
			op.CustomMetrics["storeVersions"], op.CustomMetrics["storeBytes"] = stats.Versions, stats.Bytes
			op.CustomMetrics["cacheHits"], op.CustomMetrics["cacheMisses"] = stats.CacheHits, stats.CacheMisses
			op.CustomMetrics["backlogBatches"], op.CustomMetrics["backlogBytes"] = int64(stats.BacklogBatches), stats.BacklogBytes
		}
		out = append(out, op)
	}
	return out
}

// eventTimeOf is the event time of a batch as Spark's progress has it: the newest of its records, and the watermark that the
// batch ran with. It is nil while there is nothing to say.
func eventTimeOf(s *engine.BatchStats) map[string]string {
	out := map[string]string{}
	var newest int64
	for i := range s.Sources {
		newest = max(newest, s.Sources[i].NewestMS)
	}
	if newest > 0 {
		out["max"] = sparkTime(newest)
	}
	if s.WatermarkMS > 0 || newest > 0 {
		out["watermark"] = sparkTime(s.WatermarkMS)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func sparkTime(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }
