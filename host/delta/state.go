package delta

import "fmt"

// state is what the log comes to at one version. It is never changed.
type state struct {
	version   int64
	timestamp int64 // of the newest entry, milliseconds since 1970
	inCommit  bool  // whether timestamp is an in-commit timestamp
	protocol  *Protocol
	metadata  *Metadata
	files     sorted[*Add]    // by fileKey
	removed   sorted[*Remove] // by fileKey
	kept      int             // removed files that were left when the old ones were forgotten last
	txns      sorted[Txn]     // by application
	domains   sorted[DomainMetadata]
}

// apply returns the state after the next entry. Of a txn the last one seen counts, also when its version goes down.
func (s *state) apply(e *Entry) (*state, error) {
	if e.Version != s.version+1 {
		return nil, fmt.Errorf("version %d applied to version %d", e.Version, s.version)
	}
	out := *s
	out.version = e.Version
	out.setTime(e)
	out.take(e.Actions)
	out.forget()
	return &out, nil
}

// fewRemoved is a number of removed files for which it is not worth to look for old ones.
const fewRemoved = 1000

// forget drops removed files that no checkpoint has kept for long, whenever they have doubled: a log that is followed for
// months must not hold all that ever was. Those without a date stay, as it is not known how old they are.
func (s *state) forget() {
	if s.metadata == nil || s.removed.len() <= 2*s.kept+fewRemoved {
		return
	}
	oldest := s.timestamp - 2*s.metadata.fileRetention().Milliseconds()
	s.removed = s.removed.only(func(r *Remove) bool { return r.DeletionTimestamp == nil || *r.DeletionTimestamp > oldest })
	s.kept = s.removed.len()
}

// setTime takes the time of the state's version from its entry.
func (s *state) setTime(e *Entry) {
	c := e.CommitInfo()
	s.timestamp, s.inCommit = e.timestamp(), c != nil && c.InCommitTimestamp != nil
}

// take lays actions over the state. Removes come before adds: in one entry a file that is added is live.
func (s *state) take(actions []Action) {
	var files []item[*Add]
	var removed []item[*Remove]
	var txns []item[Txn]
	var domains []item[DomainMetadata]
	for i := range actions {
		if r := actions[i].Remove; r != nil {
			key := fileKey(r.Path, r.DeletionVector)
			files = append(files, item[*Add]{key: key, gone: true})
			removed = append(removed, item[*Remove]{key: key, value: r})
		}
	}
	for i := range actions {
		switch a := &actions[i]; {
		case a.Protocol != nil:
			s.protocol = a.Protocol
		case a.Metadata != nil:
			s.metadata = a.Metadata
		case a.Txn != nil:
			txns = append(txns, item[Txn]{key: a.Txn.AppID, value: *a.Txn})
		case a.Domain != nil:
			domains = append(domains, item[DomainMetadata]{key: a.Domain.Domain, value: *a.Domain, gone: a.Domain.Removed})
		case a.Add != nil:
			key := fileKey(a.Add.Path, a.Add.DeletionVector)
			files = append(files, item[*Add]{key: key, value: a.Add})
			removed = append(removed, item[*Remove]{key: key, gone: true})
		}
	}
	s.files, s.removed = s.files.with(files), s.removed.with(removed)
	s.txns, s.domains = s.txns.with(txns), s.domains.with(domains)
}

// check says what a state lacks to be a table.
func (s *state) check() error {
	if s.protocol == nil || s.metadata == nil {
		return fmt.Errorf("no protocol or metaData up to version %d", s.version)
	}
	return nil
}
