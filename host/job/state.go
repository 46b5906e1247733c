package job

import (
	"encoding/json"
	"fmt"
)

// KeyedStage is a stage with keys, as a revision has it.
type KeyedStage struct {
	Name   string       `json:"name"`
	KeyBy  string       `json:"keyBy"` // for people, such as "/carrier+/origin"
	Tables []StateTable `json:"tables"`
}

// StateTable is a table of a stage.
type StateTable struct {
	Name string `json:"name"`
	Type string `json:"type"` // abi.TableBytes, abi.TableJSON or abi.TableI64
}

// KeyedStages lists the stages of a revision, given as canonical JSON, that have keys.
func KeyedStages(canonical []byte) ([]KeyedStage, error) {
	var r revision
	if err := json.Unmarshal(canonical, &r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoRevision, err)
	}
	var out []KeyedStage
	for i := range r.Transforms {
		t := &r.Transforms[i]
		if t.KeyBy == nil {
			continue
		}
		s := KeyedStage{Name: t.Name, KeyBy: describeKeys(t.KeyBy), Tables: []StateTable{}}
		if t.Manifest != nil {
			for k, name := range t.Manifest.Tables {
				s.Tables = append(s.Tables, StateTable{Name: name, Type: t.Manifest.typeOf(k)})
			}
		}
		out = append(out, s)
	}
	return out, nil
}
