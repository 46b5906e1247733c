package sql

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sink"
)

// An epoch row does not say in which tables the rows are. The first batch that has rows for a table notes its name beside the
// epoch row, in its own transaction: a row with the query id and "/table", and the connection's name and the table's with a slash
// between. A table that the job makes itself, and that is not there, may have been dropped with all that the job has published in
// it; and a job that goes on from a fork must not bring to a table again what is in it.

const (
	filledSuffix = "/table"
	readFilled   = `SELECT batch FROM wasmill_epoch WHERE query_id = $1 AND target = $2`
	readNoted    = `SELECT target FROM wasmill_epoch WHERE query_id = $1 ORDER BY target`
	noteFilled   = `INSERT INTO wasmill_epoch (query_id, target, version, owner, batch, digest, attempt, job, updated_at)
VALUES ($1, $2, 1, 0, CAST($3 AS bigint), $4, $5, $6, CAST(CURRENT_TIMESTAMP AS text)) ON CONFLICT (query_id, target) DO NOTHING`
)

func (t *Target) filledKey(s *Sink) (query, target string) {
	return t.query + filledSuffix, t.ID() + "/" + s.Table
}

// mayMake refuses to make a table in silence that had rows of this job in it. Without epochs only this process knows of it.
func (t *Target) mayMake(ctx context.Context, r *route) error {
	if t.exact() {
		return t.checkNew(ctx, r.sink)
	}
	if r.seen {
		return &Mismatch{
			Code: CodeRecreated, Err: errors.New("the table is gone: it was there when the job started"),
			WayOut: "put the table back and start again; or start again without it: an empty one is made, without what is published",
		}
	}
	return nil
}

// checkNew refuses to make a table anew that this job has published rows in.
func (t *Target) checkNew(ctx context.Context, s *Sink) error {
	if !t.exact() {
		return nil
	}
	epochs, err := t.conn.Table(ctx, epochTable)
	if err != nil || epochs == nil {
		return t.fault(t.epochPlace(), err)
	}
	query, target := t.filledKey(s)
	got, err := t.conn.Query(ctx, readFilled, query, target)
	if err != nil {
		return t.epochFault(err)
	}
	if len(got) == 0 {
		return nil
	}
	return fault.New(CodeRecreated, t.tablePlace(s), errors.New("the table is gone, and this job has published rows in it"),
		fmt.Sprintf("put the table back; or let an empty one be made, without what is published: %s; or %s", deleteRow(query, target), wayOutFork))
}

// noteFilled notes the tables that get their first rows.
func (t *Target) noteFilled(ctx context.Context, out *sink.Output, parts []part) (noted []*route, err error) {
	if !t.exact() {
		return nil, nil
	}
	for i := range parts {
		r := parts[i].route
		if r.sink.Table == "" || r.filled {
			continue
		}
		query, target := t.filledKey(r.sink)
		if _, err := t.conn.Query(ctx, noteFilled, query, target, number(out.Batch), out.Digest, out.Attempt, t.job); err != nil {
			return nil, t.epochFault(err)
		}
		noted = append(noted, r)
	}
	return noted, nil
}

// PublishedBy reads the epoch rows of the other query, whatever its connections are called, and counts those that it has noted one of
// this target's tables for.
func (t *Target) PublishedBy(ctx context.Context, query string) (p sink.Published, disown string, err error) {
	p = sink.Published{Batch: checkpoint.NoBatch}
	var shared []string
	err = t.look(ctx, query, func(ctx context.Context, other *Target) error {
		epochs, err := other.conn.Table(ctx, epochTable)
		if err != nil || epochs == nil {
			return t.fault(t.epochPlace(), err)
		}
		noted, err := other.conn.Query(ctx, readNoted, query+filledSuffix)
		if err != nil {
			return t.epochFault(err)
		}
		for _, row := range noted {
			conn, table, _ := strings.Cut(row[0], "/")
			ours, err := other.writesTo(ctx, table)
			if err != nil {
				return err
			}
			if !ours {
				continue
			}
			got, err := other.conn.Query(ctx, readEpoch, query, conn)
			if err != nil {
				return t.epochFault(err)
			}
			for i := range got {
				e, _, err := t.decodeEpoch(got[i])
				if err != nil {
					return err
				}
				if e.Batch > p.Batch {
					p = e.Published
				}
			}
			shared = append(shared, deleteRow(query+filledSuffix, row[0]))
		}
		return nil
	})
	return p, strings.Join(shared, "; "), err
}

// writesTo reports whether a table is one that a sink of this target writes to, whatever it is called.
func (t *Target) writesTo(ctx context.Context, table string) (bool, error) {
	place, err := t.conn.Place(ctx, table)
	if err != nil {
		return false, t.fault(t.place(), err)
	}
	for _, r := range t.order {
		if r.sink.Table == "" {
			continue
		}
		ours, err := t.conn.Place(ctx, r.sink.Table)
		if err != nil {
			return false, t.fault(t.tablePlace(r.sink), err)
		}
		if place == ours {
			return true, nil
		}
	}
	return false, nil
}

// deleteRow is the statement that removes a row of the table of epochs, for people.
func deleteRow(query, target string) string {
	return fmt.Sprintf("DELETE FROM %s WHERE query_id = %s AND target = %s", epochTable, literal(query), literal(target))
}

func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// notMade explains why a table cannot be made, which no record is to blame for.
func (t *Target) notMade(s *Sink, err error) error {
	if m := (*Mismatch)(nil); errors.As(err, &m) {
		return err
	}
	switch p := t.cfg.Database.Explain(err); {
	case p.Code == CodePrivilege:
		return &Mismatch{Code: CodePrivilege, Err: fmt.Errorf("create the table: %w", err), WayOut: "grant the role CREATE on " + schemaOf(s.Table) + ", or make the table beforehand with a role that may, and grant this one what it needs there"}
	case p.Data, p.Code == CodeStatement, p.Code == CodeColumn:
		return &Mismatch{Code: CodeTable, Err: fmt.Errorf("create the table: %w", err), WayOut: "give the sink a schema that the database can make a table of, or make the table beforehand"}
	}
	return fmt.Errorf("create the table: %w", err)
}

// schemaOf names the schema that a table is made in, for people.
func schemaOf(table string) string {
	if n, err := ParseName(table); err == nil && n.Schema != "" {
		return "the schema " + n.Schema
	}
	return "the schema that its search_path begins with"
}
