package delta

import (
	"bytes"
	"errors"
	"fmt"
	"iter"

	"github.com/go-json-experiment/json"
)

// Limits of one entry.
const (
	MaxEntryBytes = 256 << 20
	maxActions    = 20_000_000
)

// Entry is one version of the log. Actions stand in the order of the file, without those that are not known.
type Entry struct {
	Version int64
	Actions []Action
}

// CommitInfo returns the entry's commitInfo, nil when there is none.
func (e *Entry) CommitInfo() *CommitInfo {
	for i := range e.Actions {
		if c := e.Actions[i].CommitInfo; c != nil {
			return c
		}
	}
	return nil
}

// Protocol returns the entry's protocol, nil when there is none.
func (e *Entry) Protocol() *Protocol {
	for i := range e.Actions {
		if p := e.Actions[i].Protocol; p != nil {
			return p
		}
	}
	return nil
}

// Metadata returns the entry's metaData, nil when there is none.
func (e *Entry) Metadata() *Metadata {
	for i := range e.Actions {
		if m := e.Actions[i].Metadata; m != nil {
			return m
		}
	}
	return nil
}

// Txn returns the entry's txn of an application.
func (e *Entry) Txn(appID string) (Txn, bool) {
	for i := range e.Actions {
		if t := e.Actions[i].Txn; t != nil && t.AppID == appID {
			return *t, true
		}
	}
	return Txn{}, false
}

// Adds yields the entry's adds in order.
func (e *Entry) Adds() iter.Seq[*Add] {
	return func(yield func(*Add) bool) {
		for i := range e.Actions {
			if a := e.Actions[i].Add; a != nil && !yield(a) {
				return
			}
		}
	}
}

// Removes yields the entry's removes in order.
func (e *Entry) Removes() iter.Seq[*Remove] {
	return func(yield func(*Remove) bool) {
		for i := range e.Actions {
			if r := e.Actions[i].Remove; r != nil && !yield(r) {
				return
			}
		}
	}
}

// timestamp is the in-commit timestamp, or else what the writer's clock said, in milliseconds since 1970; 0 without.
func (e *Entry) timestamp() int64 {
	c := e.CommitInfo()
	switch {
	case c == nil:
		return 0
	case c.InCommitTimestamp != nil:
		return *c.InCommitTimestamp
	}
	return c.Timestamp
}

// lineError says in which line of a file something is wrong.
type lineError struct {
	line int
	err  error
}

func (e *lineError) Error() string { return fmt.Sprintf("line %d: %v", e.line, e.err) }
func (e *lineError) Unwrap() error { return e.err }

// parseEntry reads the lines of an entry.
func parseEntry(version int64, content []byte) (*Entry, error) {
	e := &Entry{Version: version}
	for n := 1; len(content) > 0; n++ {
		line, rest, _ := bytes.Cut(content, []byte{'\n'})
		content = rest
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var a Action
		err := json.Unmarshal(line, &a)
		if err == nil {
			err = a.check()
		}
		if err != nil {
			return nil, &lineError{n, err}
		}
		if a != (Action{}) {
			e.Actions = append(e.Actions, a)
		}
	}
	if len(e.Actions) == 0 {
		return nil, errNoAction
	}
	return e, e.check()
}

// check holds an entry to the rules about several actions.
func (e *Entry) check() error {
	var infos, protocols, metadatas int
	seen := make(map[string]bool, len(e.Actions))
	for i := range e.Actions {
		a := &e.Actions[i]
		var key string
		switch {
		case a.CommitInfo != nil:
			infos++
		case a.Protocol != nil:
			protocols++
		case a.Metadata != nil:
			metadatas++
		case a.Txn != nil:
			key = "txn of " + a.Txn.AppID
		case a.Domain != nil:
			key = "domainMetadata of " + a.Domain.Domain
		case a.Add != nil:
			key = "add of " + fileKey(a.Add.Path, a.Add.DeletionVector)
		case a.Remove != nil:
			key = "remove of " + fileKey(a.Remove.Path, a.Remove.DeletionVector)
		}
		if key != "" && seen[key] {
			return fmt.Errorf("more than one %s", key)
		}
		seen[key] = true
	}
	if infos > 1 || protocols > 1 || metadatas > 1 {
		return errors.New("more than one commitInfo, protocol or metaData")
	}
	if e.Version == 0 && (protocols == 0 || metadatas == 0) {
		return errors.New("version 0 without protocol or metaData")
	}
	return nil
}

// encode writes the lines of an entry, commitInfo first: in-commit timestamps ask for it.
func (e *Entry) encode() ([]byte, error) {
	var b bytes.Buffer
	for _, infos := range []bool{true, false} {
		for i := range e.Actions {
			if (e.Actions[i].CommitInfo != nil) != infos {
				continue
			}
			line, err := json.Marshal(&e.Actions[i], json.Deterministic(true))
			if err != nil {
				return nil, fmt.Errorf("write action %d: %w", i+1, err)
			}
			b.Write(append(line, '\n'))
		}
	}
	return b.Bytes(), nil
}
