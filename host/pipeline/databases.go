package pipeline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/wasmill/wasmill/host/job"
	sqlsink "github.com/wasmill/wasmill/host/sink/sql"
	"github.com/wasmill/wasmill/host/sink/sql/postgres"
	"github.com/wasmill/wasmill/host/sink/sql/sqlite"
)

// database returns what the connection of a sink leads to, and what it may take its time for.
func (p *Program) database(j *job.Job, s *job.SQLSink) (sqlsink.Database, sqlsink.Limits, error) {
	for i := range j.Connections {
		c := &j.Connections[i]
		if c.Kind != s.Kind || c.Name != s.Connection {
			continue
		}
		db, limits, err := databaseOf(c.Name, c.Kind, j.Dir, c.Settings)
		if err == nil && p.env.Database != nil {
			db = p.env.Database(db)
		}
		return db, limits, err
	}
	return nil, sqlsink.Limits{}, fmt.Errorf("no %s connection %q", s.Kind, s.Connection)
}

// CheckStatement says what is wrong with a statement of a sink, as far as can be told without its database.
func CheckStatement(kind, statement string, columns []job.Column) error {
	schema, err := schemaOf(columns)
	if err != nil || schema == nil {
		return err
	}
	_, err = sqlsink.ParseStatement(kind, statement, schema)
	return err
}

// databaseSettings are the settings of a connection to a database.
type databaseSettings struct {
	URL              *string `json:"url"`
	Path             *string `json:"path"`
	ConnectTimeout   *string `json:"connectTimeout"`
	LockTimeout      *string `json:"lockTimeout"`
	StatementTimeout *string `json:"statementTimeout"`
}

// databaseOf reads the settings of a connection to a database. Paths are relative to dir.
func databaseOf(name, kind, dir string, settings []byte) (sqlsink.Database, sqlsink.Limits, error) {
	var given databaseSettings
	dec := json.NewDecoder(bytes.NewReader(settings))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&given); err != nil {
		return nil, sqlsink.Limits{}, fmt.Errorf("settings of a %s connection: %w", kind, err)
	}
	limits, err := given.limits()
	if err != nil {
		return nil, limits, err
	}
	var db sqlsink.Database
	switch {
	case kind == "postgres" && given.URL == nil:
		err = errors.New("url is missing, as postgres://user:password@host:5432/database")
	case kind == "postgres" && given.Path != nil:
		err = errors.New("a postgres connection has a url, and no path")
	case kind == "postgres":
		db, err = postgres.New(name, *given.URL)
	case given.Path == nil || *given.Path == "":
		err = errors.New("path is missing: the file of the database, as ./orders.db")
	case given.URL != nil:
		err = errors.New("a sqlite connection has a path, and no url")
	case given.ConnectTimeout != nil:
		err = errors.New("connectTimeout is for a server, and a sqlite connection has a file")
	default:
		path := *given.Path
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		db, err = sqlite.New(name, path)
	}
	if err != nil {
		return nil, limits, err
	}
	return db, limits, nil
}

// The bounds of timeouts.
const (
	leastTimeout = 100 * time.Millisecond
	mostTimeout  = 24 * time.Hour
)

// limits reads the timeouts; 0 is the default.
func (s *databaseSettings) limits() (sqlsink.Limits, error) {
	var l sqlsink.Limits
	for _, d := range []struct {
		name  string
		given *string
		to    *time.Duration
	}{
		{"connectTimeout", s.ConnectTimeout, &l.Connect},
		{"lockTimeout", s.LockTimeout, &l.Lock},
		{"statementTimeout", s.StatementTimeout, &l.Statement},
	} {
		if d.given == nil {
			continue
		}
		v, err := time.ParseDuration(*d.given)
		if err != nil {
			return l, fmt.Errorf("%s: %.40q is not a duration such as 30s, 500ms or 10m", d.name, *d.given)
		}
		if v < leastTimeout || v > mostTimeout {
			return l, fmt.Errorf("%s: %s is not between %s and %s", d.name, v, leastTimeout, mostTimeout)
		}
		*d.to = v
	}
	return l, nil
}
