package job

import "math"

// laterKinds describes kinds of sources and sinks that the format names and this version does not have.
func laterKinds(kinds ...string) []Field {
	var fields []Field
	for _, k := range kinds {
		fields = append(fields, Field{Name: k, Type: TypeConfig, Component: true, Later: true, Interpolated: true, Doc: "Not in this version."})
	}
	return fields
}

func describeSource() Field {
	f := Field{
		Type: TypeObject,
		Fields: []Field{
			{Name: "name", Type: TypeName, Required: true, Example: "flights", Doc: "The source's name. Its progress hangs on it."},
			describeFilesSource(),
			describeGenerator(),
			describeKafkaSource(),
			describeDeltaSource(),
		},
	}
	f.Fields = append(
		f.Fields, describeEventTime(),
		Field{
			Name: "batch", Type: TypeObject, Doc: "How much one batch takes of the source.", Example: "{maxRecords: 50000}",
			Fields: []Field{
				{Name: "maxRecords", Type: TypeInt, Default: "100000", Min: 1, Max: 100_000_000, Doc: "Most records a batch."},
				{Name: "maxBytes", Type: TypeSize, Default: "64MiB", Min: kib, Max: gib, Doc: "Most bytes a batch: as they lie in the files, or as stored batches of a topic unpack to; of a topic a batch takes no more than is fetched ahead, about 8 MB as stored."},
			},
		},
		Field{
			Name: "attach", Type: TypeList, Elem: &Field{Type: TypeEnum, Values: []string{"path", "topic", "partition"}}, Max: 3,
			Example: "[path]", Doc: "Adds a header with this name to each record: where it came from.",
		},
	)
	return f
}

func describeEventTime() Field {
	return Field{
		Name: "eventTime", Type: TypeObject, Example: "{json: /time_hour, lateness: 2h}",
		Doc: "Where the event time of a record stands: give json or timestamp. A record without one has none and moves no watermark. " +
			"The job's watermark is the least of its sources', without those that have no event time at all.",
		Fields: []Field{
			{Name: "json", Type: TypePointer, Example: "/time_hour", Doc: "A JSON pointer into the value."},
			{
				Name: "timestamp", Type: TypeBool, Example: "true",
				Doc: "The timestamp of a topic's record. It is what counts without eventTime, too; this is for a lateness and idle of its own.",
			},
			{
				Name: "unit", Type: TypeEnum, Values: []string{"s", "ms", "us", "ns"}, Example: "ms",
				Doc: "The value is an integer, so many units since 1970, or a string of one, as CSV has it; RFC 3339 text with an offset is taken, too. Without it the value is such text.",
			},
			{
				Name: "lateness", Type: TypeDuration, Default: "0s", Max: 3650 * day, Example: "2h",
				Doc: "How far the watermark stays behind the newest event time.",
			},
			{
				Name: "idle", Type: TypeDuration, Min: 1, Max: 3650 * day, Example: "5s",
				Doc: "When the source gave no record for so long, its watermark goes on with the clock, so that windows close. Without it the " +
					"watermark stands still until there are records again.",
			},
			{
				Name: "complete", Type: TypeBool, Default: "false", Example: "true",
				Doc: "When everything is read the watermark goes to the end of time: all windows close and all event-time timers fire. For files " +
					"with trigger availableNow and for a generator with records; what comes in a later run is late.",
			},
		},
	}
}

func describeFilesSource() Field {
	return Field{
		Name: "files", Type: TypeObject, Component: true, Example: "{path: ./flights, format: jsonl}",
		Doc: "Reads the files of a directory or a glob, each once, in byte order of their paths. Names that begin with . or _ " +
			"or end with .tmp are skipped.",
		Fields: []Field{
			{
				Name: "path", Type: TypePath, Required: true, Interpolated: true, Example: "./flights",
				Doc: "A directory (its files and those in folders like day=2026-01-02), a file, or a pattern with *, ?, [a-z], and ** " +
					"for any number of folders. A directory or file must be there; a pattern may match nothing yet, which `run` and `plan` say.",
			},
			{
				Name: "format", Type: TypeEnum, Values: []string{"lines", "jsonl", "csv", "parquet"}, Required: true, Example: "jsonl",
				Doc: "lines: each line as it is; jsonl: the same, one JSON text a line; csv and parquet: each row becomes a JSON object.",
			},
			{
				Name: "compression", Type: TypeEnum, Values: []string{"auto", "none", "gzip", "zstd"}, Default: "auto",
				Doc: "auto goes by the first bytes of each file. parquet takes auto only: its pages say it themselves.",
			},
			{
				Name: "csv", Type: TypeObject, Doc: "How csv files are laid out.", Example: `{header: true, delimiter: ";"}`,
				Fields: []Field{
					{Name: "header", Type: TypeBool, Default: "true", Doc: "The first line of each file names the columns."},
					{Name: "delimiter", Type: TypeString, Default: ",", Example: `";"`, Doc: "One ASCII character between values."},
					{
						Name: "columns", Type: TypeList, Elem: &Field{Type: TypeString}, Max: 10_000, Example: "[carrier, flight]",
						Doc: "The names of the columns. Alone it says that there is no header line; with header: true it replaces its names. " +
							"With neither they are _c0, _c1, ...",
					},
				},
			},
			{
				Name: "settle", Type: TypeDuration, Default: "1s", Max: hour, Example: "5s",
				Doc: "A file is read once it has been unchanged for this long. With trigger availableNow the default is 0s.",
			},
			{
				Name: "onDataLoss", Type: TypeEnum, Values: []string{"stop", "skip"}, Default: "stop",
				Doc: "What happens when a file shrank, grew, vanished or changed after it was planned: stop, or take it as it is now, and say what is left out. One start with skip is enough; [files that change](#files-that-change) has the cases.",
			},
		},
	}
}

func describeGenerator() Field {
	return Field{
		Name: "generator", Type: TypeObject, Component: true, Example: "{kind: orders, seed: 1, rate: 1000}",
		Doc: "Makes records from a seed, for trials and tests: the same seed and offset give the same record.",
		Fields: []Field{
			{
				Name: "kind", Type: TypeEnum, Values: []string{"orders", "nexmark"}, Default: "orders",
				Doc: "What the records are, as JSON. orders: those of a shop, a millisecond apart, each with order_id (its number), customer (also its key, " +
					"such as c-000042), amount (up to 999.99), currency, status (new, paid, cancelled), created_at (RFC 3339, its event time) and note. " +
					"nexmark: the persons, auctions and bids of the benchmark Nexmark, without a key, each with event_type (0, 1, 2), dateTime (milliseconds, its " +
					"event time) and extra (padding); a person has id, name, emailAddress, creditCard, city and state; an auction id, itemName, " +
					"description, initialBid, reserve, expires, seller and category; a bid auction, bidder, price, channel and url.",
			},
			{Name: "seed", Type: TypeInt, Default: "0", Max: math.MaxInt64, Doc: "Another seed, other records."},
			{Name: "rate", Type: TypeInt, Default: "0", Max: 100_000_000, Doc: "Records a second; 0 is as many as a batch may take."},
			{
				Name: "records", Type: TypeInt, Default: "0", Max: math.MaxInt64,
				Doc: "Records in all; 0 is without end. The job itself ends with them only under the trigger availableNow. Of nexmark it counts events, whichever of them are records.",
			},
			describeNexmark(),
		},
	}
}

func describeNexmark() Field {
	return Field{
		Name: "nexmark", Type: TypeObject, Example: "{only: bid, flat: true}", Doc: "How the events of kind nexmark are.",
		Fields: []Field{
			{
				Name: "only", Type: TypeEnum, Values: []string{"person", "auction", "bid"}, Example: "bid",
				Doc: "Only these events are records. Their offsets are the numbers that they have among all, so that several sources fit together.",
			},
			{
				Name: "flat", Type: TypeBool, Default: "false", Example: "true",
				Doc: `The value holds the event's own fields: {"event_type":2,"auction":1000,..}. Otherwise they stand in a member called after ` +
					`the kind, beside the two others, which are null: {"event_type":2,"person":null,"auction":null,"bid":{..}}.`,
			},
			{Name: "eventRate", Type: TypeInt, Default: "10000", Min: 1, Max: 1_000_000_000, Doc: "Events in a second of event time."},
			{
				Name: "baseTime", Type: TypeInt, Default: "1700000000000", Min: 1, Max: 200_000_000_000_000,
				Doc: "The time of the first event, in milliseconds since 1970.",
			},
			{
				Name: "outOfOrder", Type: TypeInt, Default: "1", Min: 1, Max: 952,
				Doc: "Events come shuffled in groups of so many.",
			},
		},
	}
}

func describeSink() Field {
	f := Field{
		Type: TypeObject,
		Fields: []Field{
			{Name: "name", Type: TypeName, Required: true, Example: "lake", Doc: "The sink's name. What it has published hangs on it."},
			{
				Name: "from", Type: TypeList, Elem: &Field{Type: TypeRef}, Min: 1, Max: 64, Example: "[clean.flights]",
				Doc: "What it takes: sources, transforms (their first port), or ports as name.port. The sink for dead letters has none.",
			},
			{
				Name: "mode", Type: TypeEnum, Values: []string{"append", "upsert", "changelog"}, Default: "append",
				Doc: "append adds rows. upsert, for kafka, stdout and tables: a record takes the place of the earlier one of its key, and without a value it " +
					"deletes it. changelog, for kafka, stdout and files of jsonl: each update is a row. What a transform updates fits no sink that appends.",
			},
			describeFilesSink(),
			{
				Name: "stdout", Type: TypeObject, Component: true, Example: "{}",
				Doc: "Prints each value on a line of its own. At least once: a restart may print a batch again.",
				Fields: []Field{
					{Name: "format", Type: TypeEnum, Values: []string{"jsonl"}, Default: "jsonl", Doc: "How a record is printed."},
				},
			},
			describeKafkaSink(),
		},
	}
	f.Fields = append(
		f.Fields, describeDeltaSink(),
		describeSQLSink("postgres", "Writes a table of a PostgreSQL database. Exactly once: what all sinks of one connection take of a batch is one transaction."),
		describeSQLSink("sqlite", "Writes a table of a SQLite database. Exactly once: what all sinks of one connection take of a batch is one transaction."),
	)
	f.Fields = append(f.Fields, laterKinds("http")...)
	return f
}

func describeFilesSink() Field {
	return Field{
		Name: "files", Type: TypeObject, Component: true, Example: "{path: ./out, format: parquet, schema: {carrier: string}}",
		Doc: "Writes files with a manifest that Spark reads. Exactly once.",
		Fields: []Field{
			{Name: "path", Type: TypePath, Required: true, Interpolated: true, Example: "./out", Doc: "The directory. One sink, one directory."},
			{Name: "format", Type: TypeEnum, Values: []string{"parquet", "jsonl", "csv"}, Required: true, Doc: "The format of the files."},
			{
				Name: "schema", Type: TypeColumns, Example: `{carrier: string, at: timestamp, delay: "decimal(9,2)"}`,
				Doc: "The columns in order, name: type. parquet and csv need it, unless they take binary rows, whose columns a sink without a schema has; jsonl takes all else as it is. Types: string, boolean, int8, int16, int32, int64, float, double, " +
					"decimal(p,s), timestamp, timestamp(s|ms|us), timestamp_ntz, date, binary, list<type>, map<key, value>, struct<name: type, ..>, each possibly followed by not null.",
			},
			{
				Name: "partitionBy", Type: TypeList, Elem: &Field{Type: TypeString}, Max: 16, Example: "[carrier]",
				Doc: "Columns of the schema that become folders, name=value.",
			},
			{
				Name: "compression", Type: TypeEnum, Values: []string{"zstd", "snappy", "gzip", "none"},
				Doc: "zstd when not given for parquet, none for jsonl and csv. snappy is for parquet only.",
			},
			{
				Name: "csv", Type: TypeObject, Doc: "How csv files are laid out.",
				Fields: []Field{
					{Name: "header", Type: TypeBool, Default: "true", Doc: "The first line of each file names the columns."},
					{Name: "delimiter", Type: TypeString, Default: ",", Example: `";"`, Doc: "One ASCII character between values."},
				},
			},
			{Name: "maxPartRows", Type: TypeInt, Default: "5000000", Min: 1, Max: math.MaxInt32, Doc: "Most rows in a file."},
			{
				Name: "maxPartSize", Type: TypeSize, Default: "128MiB", Min: 64 * kib, Max: 4 * gib,
				Doc: "Most bytes of rows in a file, before compression.",
			},
			{
				Name: "retention", Type: TypeDuration, Default: "0s", Max: 36500 * day, Example: "720h",
				Doc: "Data files older than this are deleted, with their manifest entries. 0s keeps them for ever.",
			},
		},
	}
}
