package sql

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sink"
)

const (
	epochTable = "wasmill_epoch"
	// epochVersion is the version of the form of a row.
	epochVersion = 1
)

// EpochTable is the statement that makes the table of epochs; it may be made beforehand, by another role.
const EpochTable = `CREATE TABLE IF NOT EXISTS wasmill_epoch (
	query_id   text NOT NULL,
	target     text NOT NULL,
	version    integer NOT NULL,
	owner      bigint NOT NULL,
	batch      bigint NOT NULL,
	digest     text NOT NULL,
	attempt    text NOT NULL,
	job        text NOT NULL,
	updated_at text NOT NULL,
	PRIMARY KEY (query_id, target)
)`

// epoch is what the row of a query and a target says.
type epoch struct {
	sink.Published
	owner string
}

// The statements on the row. $1 and $2 are query and target; numbers are given as text.
const (
	readEpoch   = `SELECT version, owner, batch, digest FROM wasmill_epoch WHERE query_id = $1 AND target = $2`
	insertEpoch = `INSERT INTO wasmill_epoch (query_id, target, version, owner, batch, digest, attempt, job, updated_at)
VALUES ($1, $2, 1, 0, -1, '', '', $3, CAST(CURRENT_TIMESTAMP AS text)) ON CONFLICT (query_id, target) DO NOTHING`
	claimEpoch = `UPDATE wasmill_epoch SET owner = owner + 1, job = $3, updated_at = CAST(CURRENT_TIMESTAMP AS text)
WHERE query_id = $1 AND target = $2 AND owner < 9223372036854775807 RETURNING version, owner, batch, digest`
	lockEpoch    = `UPDATE wasmill_epoch SET owner = owner WHERE query_id = $1 AND target = $2 AND owner = CAST($3 AS bigint) RETURNING version, owner, batch, digest`
	advanceEpoch = `UPDATE wasmill_epoch SET batch = CAST($5 AS bigint), digest = $6, attempt = $7, updated_at = CAST(CURRENT_TIMESTAMP AS text)
WHERE query_id = $1 AND target = $2 AND owner = CAST($3 AS bigint) AND batch = CAST($4 AS bigint) RETURNING batch`
)

// epochQuery runs a statement that returns the row. There may be none.
func (t *Target) epochQuery(ctx context.Context, query string, args ...string) (epoch, bool, error) {
	none := epoch{Published: sink.Published{Batch: checkpoint.NoBatch}}
	got, err := t.conn.Query(ctx, query, append([]string{t.query, t.ID()}, args...)...)
	if err != nil {
		return none, false, t.epochFault(err)
	}
	if len(got) == 0 {
		return none, false, nil
	}
	return t.decodeEpoch(got[0])
}

// decodeEpoch checks the columns version, owner, batch, digest.
func (t *Target) decodeEpoch(row []string) (epoch, bool, error) {
	version, err1 := strconv.ParseInt(row[0], 10, 64)
	_, err2 := strconv.ParseInt(row[1], 10, 64)
	batch, err3 := strconv.ParseInt(row[2], 10, 64)
	if err1 == nil && version > epochVersion {
		return epoch{}, false, fault.New(CodeEpochNewer, t.epochPlace(), fmt.Errorf("the row of this job has version %d, this program knows %d", version, epochVersion),
			"use the version of Wasmill that wrote it, or a later one")
	}
	if err := errors.Join(err1, err2, err3); err != nil || version < 1 || batch < -1 || (batch >= 0) != (row[3] != "") {
		return epoch{}, false, fault.New(CodeEpoch, t.epochPlace(), errors.Join(fmt.Errorf("the row of this job is damaged: version %q, owner %q, batch %q, digest %q", row[0], row[1], row[2], row[3]), err),
			"see who else writes to this table; or "+wayOutFork)
	}
	return epoch{Published: sink.Published{Batch: checkpoint.BatchID(batch), Digest: row[3]}, owner: row[1]}, true, nil
}

// wayOutFork begins anew where the row is of no use any more.
const wayOutFork = "begin anew where the checkpoint stands: `wasmill checkpoint fork --to DIR`, then DIR under `checkpoint` in the job file"

func (t *Target) epochPlace() string { return t.place() + ", table " + epochTable }

const wayOutEpochPrivilege = "grant the role SELECT, INSERT and UPDATE on " + epochTable

// epochFault is fault for the table of epochs, whose columns are ours.
func (t *Target) epochFault(err error) error {
	p := t.cfg.Database.Explain(err)
	switch p.Code {
	case CodeColumn, CodeType, CodeKey, CodeStatement:
		return fault.New(CodeEpoch, t.epochPlace(), err, "it is not the table that Wasmill makes: see the columns and the primary key (query_id, target) in the documentation, or remove it if nothing needs it")
	case CodeTable:
		return fault.New(CodeEpoch, t.epochPlace(), fmt.Errorf("it is gone: %w", err), "put it back with its rows and start again; or "+wayOutFork)
	case CodePrivilege:
		return fault.New(CodePrivilege, t.epochPlace(), err, wayOutEpochPrivilege)
	}
	return t.fault(t.epochPlace(), err)
}

// claim makes the table and the row if need be, and this process the row's owner. It waits for the transaction of an earlier
// one to end.
func (t *Target) claim(ctx context.Context) error {
	if err := t.ensureEpochTable(ctx); err != nil {
		return err
	}
	if _, _, err := t.epochQuery(ctx, readEpoch); err != nil {
		return err // a newer version's row is left alone
	}
	var e epoch
	err := t.conn.Contend(ctx, func(ctx context.Context) error {
		if _, err := t.conn.Query(ctx, insertEpoch, t.query, t.ID(), t.job); err != nil {
			return t.epochFault(err)
		}
		var found bool
		var err error
		if e, found, err = t.epochQuery(ctx, claimEpoch, t.job); err == nil && !found {
			err = t.unclaimed(ctx)
		}
		return err
	})
	if err != nil {
		return err
	}
	t.owner, t.newest = e.owner, e.Published
	return nil
}

// unclaimed says why the row that was just there cannot be taken over.
func (t *Target) unclaimed(ctx context.Context) error {
	e, found, err := t.epochQuery(ctx, readEpoch)
	switch {
	case err != nil:
		return err
	case !found:
		return t.epochGone()
	}
	return fault.New(CodeEpoch, t.epochPlace(), fmt.Errorf("the row of this job (query_id %s, target %s) has the owner %s, the highest number there is", t.query, t.ID(), e.owner),
		fmt.Sprintf("see who else writes to this table; then, while no process runs the job: UPDATE %s SET owner = 0 WHERE query_id = %s AND target = %s", epochTable, literal(t.query), literal(t.ID())))
}

func (t *Target) ensureEpochTable(ctx context.Context) error {
	table, err := t.conn.Table(ctx, epochTable)
	if err == nil && table != nil {
		err = t.lasts(epochTable, table)
	}
	if err != nil || table != nil {
		return t.fault(t.epochPlace(), err)
	}
	if _, err = t.conn.Query(ctx, EpochTable); err == nil {
		return nil
	}
	// Another job may have made it at the same time, which some databases answer with an error.
	if table, again := t.conn.Table(ctx, epochTable); again == nil && table != nil {
		return nil
	}
	return t.epochNotMade(err)
}

// epochNotMade explains why the table of epochs cannot be made.
func (t *Target) epochNotMade(err error) error {
	if err == nil {
		return nil
	}
	m := (*Mismatch)(nil)
	if p := t.cfg.Database.Explain(err); p.Code == CodePrivilege || errors.As(err, &m) && m.Code == CodePrivilege {
		return fault.New(CodePrivilege, t.epochPlace(), fmt.Errorf("it is not there and cannot be made: %w", err),
			"grant the role CREATE on "+schemaOf("")+"; or create the table with a role that may, by the statement in the documentation, and grant this one SELECT, INSERT and UPDATE on it")
	}
	return t.fault(t.epochPlace(), fmt.Errorf("create it: %w", err))
}

func (t *Target) epochGone() error {
	return fault.New(CodeEpoch, t.epochPlace(), errors.New("the row of this job is gone"), "see who deleted it; or "+wayOutFork)
}

// regain takes the row up again on a new connection, if it is still this process's, after the transaction of the connection
// before has ended.
func (t *Target) regain(ctx context.Context) error {
	if err := t.connect(ctx); err != nil {
		return err
	}
	if !t.exact() {
		return nil
	}
	var e epoch
	var found bool
	err := t.conn.Contend(ctx, func(ctx context.Context) (err error) {
		e, found, err = t.epochQuery(ctx, lockEpoch, t.owner)
		return err
	})
	if err != nil {
		return err
	}
	if found {
		t.newest = e.Published
		return nil
	}
	return t.lostRow(ctx)
}

// lostRow finds out why the row is not ours any more, and remembers it. What is published is read all the same.
func (t *Target) lostRow(ctx context.Context) error {
	e, found, err := t.epochQuery(ctx, readEpoch)
	switch {
	case err != nil:
		return err
	case !found:
		t.fencedBy = t.epochGone()
	case e.owner != t.owner:
		t.newest, t.fencedBy = e.Published, t.fenced()
	default:
		t.fencedBy = t.conflict(e.Batch, fmt.Errorf("batch %d was the last one published, now it is %d", t.newest.Batch, e.Batch))
	}
	return t.fencedBy
}

func (t *Target) conflict(batch checkpoint.BatchID, err error) error {
	return fault.New(CodeConflict, t.epochPlace(), fmt.Errorf("publish batch %d: %w", batch, err),
		"see that one process alone runs this checkpoint, and no copy of it, and that the database was not restored, then start again")
}
