package engine

import (
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/zeebo/xxh3"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
)

// Semantics is raised whenever the host changes anything that shapes output: chunk rule, lane map, merge order, key and
// time extraction, watermarks, order and number of timers, decoders, row conversion, poison rule, what fuel, depth and
// memory cost, which bits a float has that is not a number, the words of traps, WASI policy, seeds. It is part of every
// revision. The golden batches of host/pipeline hold what a number stands for.
const Semantics = 3

// combine makes one digest of the lanes' digests.
func combine(lanes int, of func(lane int) *abi.RecordDigest) checkpoint.Digest {
	ds := make([]abi.LaneDigest, 0, lanes)
	for l := range lanes {
		d := of(l)
		if d.Count() > 0 {
			ds = append(ds, abi.LaneDigest{Lane: uint32(l), Records: uint64(d.Count()), Sum: d.Sum()})
		}
	}
	sum, n := abi.CombineLanes(ds)
	return checkpoint.Digest{Records: n, XXH3: sum}
}

// batchDigest is xxh3-128 over the canonical JSON of what a batch was and came to.
func batchDigest(query string, batch checkpoint.BatchID, revision string, inputs, outputs map[string]checkpoint.Digest, state string) (string, error) {
	text, err := json.Marshal(map[string]any{
		"query": query, "batch": batch, "revision": revision, "inputs": inputs, "outputs": outputs, "state": state,
	})
	if err != nil {
		return "", fmt.Errorf("digest batch %d: %w", batch, err)
	}
	canonical, err := abi.CanonicalJSON(text)
	if err != nil {
		return "", fmt.Errorf("digest batch %d: %w", batch, err)
	}
	sum := xxh3.Hash128(canonical).Bytes()
	return hex.EncodeToString(sum[:]), nil
}
