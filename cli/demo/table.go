package demo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// The columns that the proof reads.
const (
	columnNumber = "order_id"
	columnEuros  = "amount_eur"
)

// rowsAtOnce is how many rows are read at a time.
const rowsAtOnce = 512

// readTable hands over the rows of a Parquet table: of the files that its manifest names, by Spark's rules, and no others.
func readTable(files durable.Files, dir string, each func(number, cents int64)) error {
	names, err := manifest(files, dir)
	if err != nil {
		return fmt.Errorf("read the table's manifest: %w", err)
	}
	for _, name := range names {
		if err := readPart(files, name, each); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
	}
	return nil
}

// manifest returns the table's files: the ids in _spark_metadata from the newest .compact on, which stand at 9, 19 and so on.
func manifest(files durable.Files, dir string) ([]string, error) {
	meta := path.Join(dir, "_spark_metadata")
	infos, err := files.List(meta)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // nothing was ever published
	}
	if err != nil {
		return nil, err
	}
	latest := -1
	for _, i := range infos {
		if id, err := strconv.Atoi(strings.TrimSuffix(i.Name, ".compact")); err == nil {
			latest = max(latest, id)
		}
	}
	var out []string
	for id := max(0, (latest+1)/10*10-1); id <= latest; id++ {
		name := strconv.Itoa(id)
		if (id+1)%10 == 0 {
			name += ".compact"
		}
		listed, err := entries(files, path.Join(meta, name))
		if err != nil {
			return nil, err
		}
		out = append(out, listed...)
	}
	return out, nil
}

func entries(files durable.Files, name string) ([]string, error) {
	content, err := readFile(files, name)
	if err != nil {
		return nil, err
	}
	head, rest, _ := bytes.Cut(content, []byte("\n"))
	if string(head) != "v1" {
		return nil, fmt.Errorf("%s begins with %.20q", name, head)
	}
	var out []string
	for line := range bytes.Lines(rest) {
		var e struct{ Path, Action string }
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		u, err := url.Parse(e.Path)
		if err != nil || e.Action != "add" {
			return nil, fmt.Errorf("%s: entry %.200s", name, line)
		}
		out = append(out, u.Path)
	}
	return out, nil
}

// readPart reads one Parquet file.
func readPart(files durable.Files, name string, each func(number, cents int64)) (err error) {
	f, err := files.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	p, err := parquet.OpenFile(f, info.Size)
	if err != nil {
		return err
	}
	number, ok1 := p.Schema().Lookup(columnNumber)
	euros, ok2 := p.Schema().Lookup(columnEuros)
	if !ok1 || !ok2 {
		return fmt.Errorf("columns %s and %s are not both there", columnNumber, columnEuros)
	}
	for _, group := range p.RowGroups() {
		if err := readGroup(group, number.ColumnIndex, euros.ColumnIndex, each); err != nil {
			return err
		}
	}
	return nil
}

func readGroup(group parquet.RowGroup, number, euros int, each func(number, cents int64)) (err error) {
	rows := group.Rows()
	defer func() { err = errors.Join(err, rows.Close()) }()
	buf := make([]parquet.Row, rowsAtOnce)
	for {
		n, err := rows.ReadRows(buf)
		for _, row := range buf[:n] {
			each(whole(row, number), whole(row, euros))
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// whole is a row's value in a column, which is a whole number however it is stored, or -1.
func whole(row parquet.Row, column int) int64 {
	for _, v := range row {
		switch {
		case v.Column() != column:
		case v.IsNull():
			return -1
		case v.Kind() == parquet.Int32:
			return int64(v.Int32())
		case v.Kind() == parquet.Int64:
			return v.Int64()
		}
	}
	return -1
}

func readFile(files durable.Files, name string) (content []byte, err error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(f)
}
