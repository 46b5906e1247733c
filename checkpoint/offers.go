package checkpoint

import "fmt"

// Choice is one way to repair a checkpoint.
type Choice string

// The choices.
const (
	// MoveTorn moves an incomplete last record aside.
	MoveTorn Choice = "move-torn"
	// Forget gives up the history before a gap; the job goes on where it stands.
	Forget Choice = "forget"
	// Rewind goes back to the last batch up to which everything is there.
	Rewind Choice = "rewind"
	// RestoreMetadata writes the query id anew.
	RestoreMetadata Choice = "restore-metadata"
	// Rename gives the checkpoint to a job with another name.
	Rename Choice = "rename"
	// Clean removes checksums without their record.
	Clean Choice = "clean"
)

// Offer is a choice that fits the state of a checkpoint, the best first.
type Offer struct {
	Choice Choice `json:"choice"`
	Does   string `json:"does"`
	Risk   string `json:"risk"`            // what the user must know
	Needs  string `json:"needs,omitempty"` // what must be given with it
}

const riskTargets = "the targets are not asked: one that has already published such a batch will stop the job at its start"

// queryIDStands says where a person finds the query id of a checkpoint that has lost it.
const queryIDStands = "it stands in _spark_metadata/_wasmill.json of a files sink, before the slash of txn.appId in a Delta table's log, " +
	"in the table wasmill_epoch of a database, in the name of the topic __wasmill.<query id>, and as `query` in dead letters"

// offers finds what can be done about the findings.
func (s *survey) offers() []Offer {
	var list []Offer
	has := make(map[string]bool)
	for _, f := range s.report.Findings {
		has[f.Code] = true
	}
	if has[CodeMetadataMissing] || has[CodeMetadata] {
		list = append(list, Offer{
			RestoreMetadata, "writes the query id into " + metadataFile,
			"with a wrong id the targets refuse the job, or take its batches for new ones; they know the right one", "--query-id UUID, the query id: " + queryIDStands,
		})
	}
	if has[CodeTorn] {
		list = append(list, Offer{
			MoveTorn, "moves the incomplete last record aside, so that its batch is planned or decided again",
			riskTargets + "; `wasmill run` asks them and does the same by itself", "",
		})
	}
	if has[CodeGap] || has[CodeUnreadable] || has[CodeNoPlan] {
		if from := s.tailRun(); from > s.view.start() {
			list = append(list, Offer{
				Forget, fmt.Sprintf("gives up the history before batch %d, which is not needed to go on", from),
				"earlier batches can no longer be replayed", "",
			})
		}
		if s.rewindable() {
			list = append(list, Offer{Rewind, s.rewindWords(), riskTargets, ""})
		}
	}
	if has[CodeLeftover] {
		list = append(list, Offer{Clean, "removes checksums without their record", "none", ""})
	}
	return list
}

// lastPair is the last batch up to which every plan and decision is there and readable, NoBatch when there is none.
func (s *survey) lastPair() BatchID {
	id := s.view.start()
	for s.pair(id) {
		id++
	}
	if id == s.view.start() {
		return NoBatch
	}
	return id - 1
}

func (s *survey) pair(id BatchID) bool { return s.plans[id] != nil && s.decisions[id] != nil }

// tailRun is the first batch of the run of readable pairs that leads to the last plan without a gap, or NoBatch when
// the run is too short to go on from: recovery needs the last plan and decision and those before.
func (s *survey) tailRun() BatchID {
	last := s.view.offsets.last()
	if last < s.view.commits.last() || s.plans[last] == nil {
		return NoBatch
	}
	top := last
	if !s.view.commits.has(last) {
		top--
	}
	from := top + 1
	for s.pair(from - 1) {
		from--
	}
	if top-from < 1 {
		return NoBatch
	}
	return from
}

// rewindable reports whether a rewind changes anything and leaves a log to go on from: recovery needs the pair before
// the last one too, unless that is batch 0, and with older batches removed a job cannot begin anew.
func (s *survey) rewindable() bool {
	to := s.lastPair()
	if s.view.start() > 0 && to <= s.view.start() {
		return false
	}
	return s.view.offsets.last() > to || s.view.commits.last() > to
}

func (s *survey) rewindWords() string {
	to := s.lastPair()
	if to == NoBatch {
		return "moves all plans and decisions aside: the job begins anew under the same query id"
	}
	return fmt.Sprintf("goes back to batch %d, the last up to which everything is there, and moves later records aside", to)
}
