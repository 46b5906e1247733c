package checkpoint

import (
	"context"
	"errors"
	"path"
	"slices"
	"strconv"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// Reader reads a checkpoint without taking it over or changing it, while a job runs on it or not: for what a job will do
// next, and to run a retained batch again. It holds nothing open.
type Reader struct {
	files durable.Files
	dir   string
	id    string
	job   string
	names []string // sources by number, as the last plan has them
}

// OpenReader checks a checkpoint as Open does, and changes nothing. A directory that is not there, or holds nothing of a
// checkpoint yet, is an error with code CodeMissing. A torn last record is not refused: Tail reports it.
func OpenReader(ctx context.Context, files durable.Files, dir string) (*Reader, error) {
	if err := isCheckpoint(files, dir); err != nil {
		return nil, err
	}
	v, err := lookSteady(ctx, files, dir)
	if err != nil {
		return nil, err
	}
	if err := v.err(); err != nil {
		return nil, err
	}
	r := &Reader{files: files, dir: dir}
	if v.hasMetadata {
		if r.id, err = readMetadata(ctx, files, dir); err != nil {
			return nil, err
		}
	}
	var owner ownerWire
	if _, err := readNote(ctx, files, dir, ownerFile, &owner); err != nil {
		return nil, err
	}
	r.job = owner.Job
	p, _, err := r.Tail(ctx)
	if torn := (*TornError)(nil); err != nil && !errors.As(err, &torn) {
		return nil, err
	}
	if p != nil {
		for _, s := range p.Sources {
			r.names = append(r.names, s.Name)
		}
	}
	return r, nil
}

// QueryID is the identity of the job's progress, "" before the job's first start came to write it.
func (r *Reader) QueryID() string { return r.id }

// Job is the name of the job whose progress it is, "" when nothing says so.
func (r *Reader) Job() string { return r.job }

// CheckJob refuses the progress of a job with another name, as Open does.
func (r *Reader) CheckJob(job string) error {
	if r.job == "" || r.job == job {
		return nil
	}
	return otherJob(r.job, job)
}

// Tail reads the last plan, and the decision of the same batch if there is one; nil, nil before the first batch. A last
// record that is incomplete is a *TornError, returned together with the tail as it is without that record.
func (r *Reader) Tail(ctx context.Context) (*Plan, *Decision, error) {
	v, err := lookSteady(ctx, r.files, r.dir)
	if err != nil {
		return nil, nil, err
	}
	last := v.offsets.last()
	if last == NoBatch {
		return nil, nil, nil
	}
	decided := v.commits.has(last)
	p, err := r.ownPlan(ctx, last)
	var torn *TornError
	switch {
	case errors.As(err, &torn) && decided:
		return nil, nil, whole(err)
	case torn != nil && !v.offsets.has(last-1):
		return nil, nil, torn
	case torn != nil:
		p, err := r.Plan(ctx, last-1)
		if err != nil {
			return nil, nil, err
		}
		d, err := r.Decision(ctx, last-1)
		return p, d, errors.Join(err, torn)
	case err != nil || !decided:
		return p, nil, err
	}
	d, err := r.ownDecision(ctx, last)
	return p, d, err
}

// Kept returns the oldest and the newest batch of which there is a plan, NoBatch when there is none.
func (r *Reader) Kept(ctx context.Context) (oldest, newest BatchID, err error) {
	v, err := lookSteady(ctx, r.files, r.dir)
	if err != nil {
		return NoBatch, NoBatch, err
	}
	return v.offsets.first(), v.offsets.last(), nil
}

// Plan reads the plan of a retained batch.
func (r *Reader) Plan(ctx context.Context, id BatchID) (*Plan, error) {
	p, err := r.ownPlan(ctx, id)
	return p, whole(err)
}

// Decision reads the decision of a retained batch. A batch without one is an error with code CodeMissing.
func (r *Reader) Decision(ctx context.Context, id BatchID) (*Decision, error) {
	d, err := r.ownDecision(ctx, id)
	return d, whole(err)
}

func (r *Reader) ownPlan(ctx context.Context, id BatchID) (*Plan, error) {
	p, foreign, err := loadPlan(ctx, r.files, r.dir, id)
	if err == nil && foreign {
		return nil, errorf(CodeForeign, wayForeign, []string{recordName(offsetsDir, id)}, "the plan of a Spark query, whose sources have no names")
	}
	return p, err
}

func (r *Reader) ownDecision(ctx context.Context, id BatchID) (*Decision, error) {
	d, foreign, err := loadDecision(ctx, r.files, r.dir, id)
	if err == nil && foreign {
		return nil, errorf(CodeForeign, wayForeign, []string{recordName(commitsDir, id)}, "Spark has taken this batch over")
	}
	return d, err
}

// Revision returns the canonical JSON of a revision.
func (r *Reader) Revision(ctx context.Context, sha string) ([]byte, error) {
	return readArtifact(ctx, r.files, r.dir, revisionName(sha), sha, maxRevision)
}

// Module returns a module.
func (r *Reader) Module(ctx context.Context, sha string) ([]byte, error) {
	return readArtifact(ctx, r.files, r.dir, moduleName(sha), sha, maxModule)
}

// Published returns what the targets were last seen to have published, nil when there is no such note: it is a check,
// not the truth.
func (r *Reader) Published(ctx context.Context) map[string]PublishedMark {
	return readPublished(ctx, r.files, r.dir)
}

// Resolution returns what a user has chosen for a target and a batch, nil when nothing.
func (r *Reader) Resolution(ctx context.Context, batch BatchID, target string) (*ResolutionRecord, error) {
	return readResolution(ctx, r.files, r.dir, batch, target)
}

// SourceDir returns the directory of what a source remembers, without making it. A name that no plan knows gets one that
// is not there.
func (r *Reader) SourceDir(name string) (string, error) {
	i := slices.Index(r.names, name)
	if i < 0 {
		i = len(r.names)
		r.names = append(r.names, name)
	}
	return path.Join(r.dir, sourcesDir, strconv.Itoa(i)), nil
}
