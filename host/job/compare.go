package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Severity says what a change of a running job needs.
type Severity string

// The severities.
const (
	// Compatible changes take effect with the next planned batch.
	Compatible Severity = "compatible"
	// NeedsConsent changes lose, repeat or mix something. They are made only when the user says so.
	NeedsConsent Severity = "needs-consent"
	// Impossible changes cannot be made in the same checkpoint.
	Impossible Severity = "impossible"
)

// Change is one difference between the revision that last ran and the one that would run now.
type Change struct {
	Path     string // "sinks.lake.schema.delay"
	What     string // what changed and what follows from it, for people
	Severity Severity
}

// ErrNoRevision is returned for a text that is no revision.
var ErrNoRevision = errors.New("not a revision")

// Compare lists the changes from one revision to the next, both as Revision returns them, in the order of the job file.
// Equal revisions have none.
func Compare(before, after []byte) ([]Change, error) {
	if bytes.Equal(before, after) {
		return nil, nil
	}
	var a, b revision
	if err := errors.Join(json.Unmarshal(before, &a), json.Unmarshal(after, &b)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoRevision, err)
	}
	var d differ
	d.host(&a, &b)
	d.sources(a.Sources, b.Sources)
	d.transforms(a.Transforms, b.Transforms)
	d.sinks(a.Sinks, b.Sinks)
	if a.Errors != b.Errors {
		d.ok("errors", fmt.Sprintf("the error policy changes from %s to %s", describePolicy(a.Errors), describePolicy(b.Errors)))
	}
	if len(d) == 0 {
		d.ok("", "the revision changes in a way that this version of wasmill does not know")
	}
	return d, nil
}

func describePolicy(e revisionErrors) string {
	s := fmt.Sprintf("%s (at most %d", e.Policy, e.Max)
	if e.DeadLetters != "" {
		s += ", to " + e.DeadLetters
	}
	return s + ")"
}

type differ []Change

func (d *differ) ok(path, what string)      { *d = append(*d, Change{path, what, Compatible}) }
func (d *differ) consent(path, what string) { *d = append(*d, Change{path, what, NeedsConsent}) }

func (d *differ) host(a, b *revision) {
	if a.ABI != b.ABI {
		d.ok("abi", fmt.Sprintf("ABI %d becomes %d", a.ABI, b.ABI))
	}
	if a.Semantics != b.Semantics {
		d.ok("semantics", fmt.Sprintf("the host's semantics %d becomes %d: batches from before cannot be proven by a replay any more", a.Semantics, b.Semantics))
	}
	if a.Lanes != b.Lanes {
		what := fmt.Sprintf("%d lanes become %d: output may come in another order", a.Lanes, b.Lanes)
		if slices.ContainsFunc(a.Transforms, func(t revisionTransform) bool { return t.KeyBy != nil }) {
			what += "; state goes along"
		}
		d.ok("lanes", what)
	}
	if a.Groups != b.Groups {
		*d = append(*d, Change{"groups", fmt.Sprintf("%d key groups become %d, and state is laid out by them", a.Groups, b.Groups), Impossible})
	}
}

func (d *differ) sources(a, b map[string]revisionSource) {
	for _, name := range sortedNames(a, b) {
		old, had := a[name]
		now, has := b[name]
		path := "sources." + name
		switch {
		case !had:
			d.ok(path, "a new source: it is read from its beginning")
		case !has:
			d.consent(path, "the source is gone: what it has not read yet is never read; under another name it would be read again from the beginning")
		default:
			d.source(path, old, now)
		}
	}
}

func (d *differ) source(path string, a, b revisionSource) {
	if a.Format != b.Format {
		d.consent(path+".format", fmt.Sprintf("%s becomes %s: a file that is half read cannot be gone on with", a.Format, b.Format))
	}
	if a.Compression != b.Compression {
		d.ok(path+".compression", "the compression changes, for files read from now on")
	}
	if !reflect.DeepEqual(a.CSV, b.CSV) {
		d.ok(path+".csv", "the csv layout changes, for files read from now on")
	}
	if !reflect.DeepEqual(a.Generator, b.Generator) {
		d.ok(path+".generator", "the generator makes other records from now on")
	}
	if a.Isolation != b.Isolation {
		d.ok(path+".isolation", "another isolation level, for records read from now on")
	}
	d.formats(path+".decode", a.Decode, b.Decode, "records read from now on")
	if !slices.Equal(a.Attach, b.Attach) {
		d.ok(path+".attach", "other headers are attached from now on")
	}
	if !reflect.DeepEqual(a.EventTime, b.EventTime) {
		d.ok(path+".eventTime", "the event time changes, for records read from now on; the watermark never goes back")
	}
}

func (d *differ) transforms(a, b []revisionTransform) {
	name := func(t revisionTransform) string { return t.Name }
	if reordered(a, b, name) {
		d.ok("transforms", "they stand in another order, which changes no record")
	}
	pair(a, b, name, func(old, now *revisionTransform) {
		switch {
		case old == nil:
			d.ok("transforms."+now.Name, "a new transform")
		case now == nil && stateful(old):
			d.consent("transforms."+old.Name, "the transform is gone, and what it has kept, tables and timers, is deleted; under another name it begins empty")
		case now == nil:
			d.ok("transforms."+old.Name, "the transform is gone")
		default:
			d.transform("transforms."+old.Name, old, now)
		}
	})
}

func stateful(t *revisionTransform) bool {
	return t.KeyBy != nil || t.Manifest != nil && len(t.Manifest.Tables) > 0
}

func (d *differ) transform(path string, a, b *revisionTransform) {
	if !slices.Equal(a.From, b.From) {
		d.ok(path+".from", fmt.Sprintf("it reads %v instead of %v", b.From, a.From))
	}
	d.keys(path+".keyBy", a, b)
	if a.Module != b.Module {
		d.ok(path+".module", fmt.Sprintf("the code changes from sha256:%.12s to sha256:%.12s", a.Module, b.Module))
	}
	if a.Manifest != nil && b.Manifest != nil {
		d.tables(path+".tables.", a.Manifest, b.Manifest)
	}
	if a.Image != b.Image && a.Module == b.Module && bytes.Equal(a.Config, b.Config) {
		d.ok(path+".image", "the module starts in another state, with the same code and config")
	}
	if members := stateMembers(a, b); len(members) > 0 {
		*d = append(*d, Change{
			path + ".config", fmt.Sprintf("%s of the config changes, and the state was made with the old one: bring it back, or give the transform a new name, which begins with no state, and allow that what is kept under the old name is deleted",
				strings.Join(members, ", ")), Impossible,
		})
	} else if !bytes.Equal(a.Config, b.Config) {
		d.ok(path+".config", fmt.Sprintf("the config changes from %.200s to %.200s", a.Config, b.Config))
	}
	if a.Limits != b.Limits {
		d.ok(path+".limits", "the limits change: records that were poison may pass, and the other way round")
	}
}

// stateMembers are the members of the config that state depends on and that change. There is state only in a stage that has
// keys before and after.
func stateMembers(a, b *revisionTransform) []string {
	if a.KeyBy == nil || b.KeyBy == nil || a.Manifest == nil || b.Manifest == nil {
		return nil
	}
	var before, after map[string]json.RawMessage
	if errors.Join(json.Unmarshal(a.Config, &before), json.Unmarshal(b.Config, &after)) != nil {
		return nil // a config is an object
	}
	var out []string
	for _, name := range slices.Concat(a.Manifest.StateConfig, b.Manifest.StateConfig) {
		if !bytes.Equal(before[name], after[name]) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

func (d *differ) keys(path string, a, b *revisionTransform) {
	switch {
	case reflect.DeepEqual(a.KeyBy, b.KeyBy):
	case a.KeyBy == nil:
		d.ok(path, "the stage gets keys, and can keep state from now on")
	case b.KeyBy == nil:
		d.consent(path, "the stage has no keys any more: what it has kept, tables and timers, is deleted")
	case len(a.KeyBy) < len(b.KeyBy) && reflect.DeepEqual(a.KeyBy, b.KeyBy[:len(a.KeyBy)]):
		d.ok(path, "more inputs, with keys of their own; state stays under the keys it has")
	default:
		d.consent(path, fmt.Sprintf("the key changes from %s to %s: state kept under the old keys is not found again", describeKeys(a.KeyBy), describeKeys(b.KeyBy)))
	}
}

func describeKeys(keys []*revisionKeyBy) string {
	var out []string
	for _, k := range keys {
		switch {
		case k == nil:
			out = append(out, "none")
		case k.Key:
			out = append(out, "the record's key")
		case k.Header != "":
			out = append(out, fmt.Sprintf("header %.100q", k.Header))
		default:
			out = append(out, fmt.Sprintf("%.200s", strings.Join(k.JSON, "+")))
		}
	}
	return strings.Join(slices.Compact(out), ", ")
}

func (d *differ) tables(path string, a, b *revisionManifest) {
	for i, t := range a.Tables {
		k := slices.Index(b.Tables, t)
		switch {
		case k < 0:
			d.consent(path+t, "the new code has no such table: what it holds is deleted; under another name it begins empty")
		case a.typeOf(i) != b.typeOf(k):
			d.consent(path+t, fmt.Sprintf("its values change from %s to %s, and those that are kept stay as they are: the new code must read both", a.typeOf(i), b.typeOf(k)))
		}
	}
	for _, t := range b.Tables {
		if !slices.Contains(a.Tables, t) {
			d.ok(path+t, "a new table, empty at first")
		}
	}
}

// pair visits the elements of two lists by name: first those of a with their like in b, then what is new in b.
func pair[T any](a, b []T, name func(T) string, visit func(old, now *T)) {
	for i := range a {
		k := slices.IndexFunc(b, func(t T) bool { return name(t) == name(a[i]) })
		if k < 0 {
			visit(&a[i], nil)
			continue
		}
		visit(&a[i], &b[k])
	}
	for i := range b {
		if !slices.ContainsFunc(a, func(t T) bool { return name(t) == name(b[i]) }) {
			visit(nil, &b[i])
		}
	}
}

// reordered reports whether the elements that two lists share stand in another order.
func reordered[T any](a, b []T, name func(T) string) bool {
	last := -1
	for i := range a {
		k := slices.IndexFunc(b, func(t T) bool { return name(t) == name(a[i]) })
		if k < 0 {
			continue
		}
		if k < last {
			return true
		}
		last = k
	}
	return false
}

func sortedNames(a, b map[string]revisionSource) []string {
	names := make([]string, 0, len(a)+len(b))
	for n := range a {
		names = append(names, n)
	}
	for n := range b {
		if _, both := a[n]; !both {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names
}
