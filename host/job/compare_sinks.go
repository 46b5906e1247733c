package job

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

func (d *differ) sinks(a, b []revisionSink) {
	name := func(s revisionSink) string { return s.Name }
	if reordered(a, b, name) {
		d.ok("sinks", "they stand in another order, which changes no record")
	}
	pair(a, b, name, func(old, now *revisionSink) {
		switch {
		case old == nil:
			d.ok("sinks."+now.Name, "a new sink: it gets the batches from now on")
		case now == nil:
			d.consent("sinks."+old.Name, "the sink is gone: what it has published stays, and it gets no more")
		default:
			d.sink("sinks."+old.Name, old, now)
		}
	})
}

func (d *differ) sink(path string, a, b *revisionSink) {
	if !slices.Equal(a.From, b.From) {
		d.ok(path+".from", fmt.Sprintf("it takes %v instead of %v", b.From, a.From))
	}
	if a.Mode != b.Mode {
		d.consent(path+".mode", describeMode(a, b))
	}
	if a.Format != b.Format {
		d.consent(path+".format", fmt.Sprintf("%s becomes %s: what is published already stays as it is", a.Format, b.Format))
	}
	if !slices.Equal(a.PartitionBy, b.PartitionBy) {
		d.consent(path+".partitionBy", fmt.Sprintf("the folders change from %v to %v: readers need one layout", a.PartitionBy, b.PartitionBy))
	}
	if a.Mode == b.Mode && a.Format == b.Format && !slices.Equal(a.Key, b.Key) {
		d.consent(path+".key", fmt.Sprintf("the key changes from (%s) to (%s): from now on a row takes the place of what has its new key, and a record without a value deletes by it; "+
			"rows from before that the new key does not tell apart stay until one with their key comes", strings.Join(a.Key, ", "), strings.Join(b.Key, ", ")))
	}
	if a.Format == b.Format && !reflect.DeepEqual(a.Kafka, b.Kafka) {
		d.ok(path+".kafka", "other records fit the sink from now on: maxMessage, topicHeader or its topics change")
	}
	d.formats(path+".encode", a.Encode, b.Encode, "records published from now on")
	d.columns(path+".schema", a, b)
}

// describeMode says what follows from another mode. Tables have a key with upsert alone.
func describeMode(a, b *revisionSink) string {
	what := fmt.Sprintf("%s becomes %s", a.Mode, b.Mode)
	switch {
	case b.Mode == ModeUpsert && len(b.Key) > 0:
		return what + fmt.Sprintf(" with key (%s): from now on a row takes the place of the one with its key. Rows from before stay, several of one key too, until one with their key comes", strings.Join(b.Key, ", "))
	case a.Mode == ModeUpsert && len(a.Key) > 0 && b.Mode == ModeAppend:
		return what + fmt.Sprintf(": from now on each record is one more row, also where there is one with its key (%s), and a record without a value deletes nothing. Rows from before stay as they are", strings.Join(a.Key, ", "))
	}
	return what + ", beside rows that are already there"
}

func (d *differ) columns(path string, a, b *revisionSink) {
	if (a.Schema == nil) != (b.Schema == nil) {
		d.consent(path, "rows with and without a schema would lie side by side")
		return
	}
	name := func(c revisionColumn) string { return c.Name }
	if reordered(a.Schema, b.Schema, name) {
		d.order(path, b)
	}
	pair(a.Schema, b.Schema, name, func(old, now *revisionColumn) {
		switch {
		case old == nil:
			d.ok(path+"."+now.Name, "a new column: rows from before have null")
		case now == nil:
			d.consent(path+"."+old.Name, "the column is gone: rows from now on have none")
		case old.Type != now.Type:
			d.consent(path+"."+old.Name, fmt.Sprintf("%s becomes %s: %s", old.Type, now.Type, otherType(b.Format)))
		}
	})
}

// order tells of columns that stand in another order.
func (d *differ) order(path string, s *revisionSink) {
	switch s.Format {
	case "csv":
		d.consent(path, "the columns stand in another order, in files from now on: readers that go by their places would mix them up with files from before")
	case "delta", "postgres", "sqlite":
		d.ok(path, "the columns stand in another order; those of the table go by their names and stay as they are")
	default:
		d.ok(path, "the columns stand in another order, in files from now on; readers go by their names")
	}
}

// otherType says what a column of another type needs. A table has one type for all rows.
func otherType(format string) string {
	switch format {
	case "delta":
		return "no flag changes a table. Rewrite it first with a tool that can, so that the column has the new type; or take the change back and add a column of another name (`schemaEvolution: add-columns`), " +
			"or write to a new table under another name of the sink"
	case "postgres":
		return "no flag changes a table. Where its column does not take the new type, alter it first, or write to a new table under another name of the sink"
	case "sqlite":
		return "no flag changes a table. Where its column does not take the new type, alter it first, or write to a new table under another name of the sink. " +
			"Where it does, rows that are there keep the text they were written as (times with a Z, say), so that a key of them is no longer met: write them anew first"
	}
	return "readers may not read both as one table"
}
