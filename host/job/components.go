package job

import "math"

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30

	second = 1000
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour
)

// Describe returns the description of the whole job file. Each call returns a fresh copy.
func Describe() Field {
	return Field{
		Type: TypeObject, Doc: "A Wasmill job: what is read, which transforms run, where the output goes.", Since: APIVersion,
		Fields: []Field{
			{
				Name: "apiVersion", Type: TypeEnum, Values: []string{APIVersion}, Required: true, Example: APIVersion,
				Doc: "The version of the job file format.",
			},
			{Name: "kind", Type: TypeEnum, Values: []string{"Job"}, Required: true, Example: "Job", Doc: "What the file describes."},
			{
				Name: "metadata", Type: TypeObject, Required: true, Doc: "What the job is called.",
				Fields: []Field{
					{Name: "name", Type: TypeName, Required: true, Example: "delays", Doc: "The job's name, for people, logs and metrics."},
					{
						Name: "labels", Type: TypeMap, Elem: &Field{Type: TypeString}, Example: "{team: flights}",
						Doc: "Free labels. They have no effect on the job.",
					},
				},
			},
			describeSpec(),
		},
	}
}

func describeSpec() Field {
	source, transform, sink := describeSource(), describeTransform(), describeSink()
	return Field{
		Name: "spec", Type: TypeObject, Required: true, Doc: "What the job does.",
		Fields: []Field{
			{
				Name: "checkpoint", Type: TypePath, Required: true, Interpolated: true, Example: "./checkpoints/delays",
				Doc: "The directory that holds the job's progress. One job, one directory; nothing else may write into it.",
			},
			describeTrigger(),
			{
				Name: "lanes", Type: TypeInt, Default: "4", Min: 1, Max: 64, Example: "4",
				Doc: "How many lanes each stage has: the unit of parallelism and of order. Part of the revision. It may be changed between batches: state goes along.",
			},
			{Name: "sources", Type: TypeList, Elem: &source, Required: true, Min: 1, Max: 64, Doc: "The inputs."},
			{
				Name: "transforms", Type: TypeList, Elem: &transform, Max: 64,
				Doc: "The WebAssembly stages. Without any, records go from sources to sinks as they are.",
			},
			{Name: "sinks", Type: TypeList, Elem: &sink, Required: true, Min: 1, Max: 64, Doc: "The outputs."},
			describeErrors(),
			describeRetention(),
			{
				Name: "spool", Type: TypeEnum, Values: []string{SpoolAuto, SpoolAlways, SpoolNever}, Default: SpoolAuto,
				Doc: "Whether what a batch publishes to Kafka and other targets that forget it in a crash is kept in the checkpoint until it is published: " +
					"it can then be published also when its input is gone. auto: in jobs that publish to more than one target.",
			},
			describeConnections(),
		},
	}
}

func describeTrigger() Field {
	return Field{
		Name: "trigger", Type: TypeObject, Doc: "When a batch begins. interval and availableNow exclude each other.", Example: "{interval: 1s}",
		Fields: []Field{
			{
				Name: "interval", Type: TypeDuration, Default: "0s", Max: day, Example: "1s",
				Doc: "Time from the start of one batch to the start of the next. 0s is back to back.",
			},
			{
				Name: "availableNow", Type: TypeBool, Default: "false", Example: "true",
				Doc: "Read what exists at the start, in as many batches as it takes, and end.",
			},
			{
				Name: "minRecords", Type: TypeInt, Default: "0", Max: 100_000_000, Example: "10000",
				Doc: "A batch begins when so many records have come, of all sources together: tables get fewer and larger files. Needs maxDelay. " +
					"Of topics it counts offsets; files of which nothing is counted before they are read are not waited for.",
			},
			{Name: "maxDelay", Type: TypeDuration, Max: day, Example: "30s", Doc: "How long what has come waits for minRecords, at most. A batch may take as long, too: it takes all that has come, up to the sources' batch.maxRecords."},
		},
	}
}

func describeErrors() Field {
	return Field{
		Name: "errors", Type: TypeObject, Doc: "What becomes of a record that cannot be processed.",
		Example: "{policy: dead-letter, deadLetters: dead}",
		Fields: []Field{
			{
				Name: "policy", Type: TypeEnum, Values: []string{PolicyStop, PolicyDeadLetter, PolicySkip}, Default: PolicyStop,
				Example: PolicyDeadLetter,
				Doc:     "stop fails the batch; dead-letter writes the record and the reason to a sink; skip drops and counts it. A record that a transform fails on, by a trap or a status, makes its lane start again without it, at most 16 times a lane of a batch; then the job stops.",
			},
			{Name: "deadLetters", Type: TypeName, Example: "dead", Doc: "The sink that takes the dead letters. It has no `from`."},
			{
				Name: "max", Type: TypeInt, Default: "1000", Min: 1, Max: 1_000_000, Example: "1000",
				Doc: "How many records a batch may set aside before the job stops.",
			},
		},
	}
}

func describeRetention() Field {
	return Field{
		Name: "retention", Type: TypeObject, Doc: "Which sealed batches the checkpoint keeps for replay; never more than 10,000.",
		Fields: []Field{
			{
				Name: "batches", Type: TypeInt, Default: "100", Min: 2, Max: 10_000, Example: "100",
				Doc: "The newest batches, kept whatever their age.",
			},
			{
				Name: "age", Type: TypeDuration, Default: "24h", Max: 3650 * day, Example: "24h",
				Doc: "How long older batches are kept; 0s: not at all.",
			},
		},
	}
}

func describeConnections() Field {
	kind := func(name, doc string) Field {
		return Field{Name: name, Type: TypeConfig, Doc: doc, Component: true, Interpolated: true}
	}
	return Field{
		Name: "connections", Type: TypeMap, Interpolated: true,
		Example: `{main: {kafka: {brokers: ["${env:KAFKA_BROKERS:-127.0.0.1:9092}"]}}}`,
		Doc:     "Clusters and databases by name. They are never part of the revision and never stored.",
		Elem: &Field{
			Type: TypeObject, Interpolated: true,
			Fields: []Field{
				kind("kafka", "A Kafka cluster: brokers, clientId, tls {ca, cert, key (PEM texts), serverName, insecureSkipVerify}, sasl {mechanism "+
					"(plain, scram-sha-256, scram-sha-512, oauthbearer), username, password, token, tokenUrl, clientId, clientSecret, scope, extensions}, "+
					"dialTimeout, requestTimeout."),
				kind("schemaRegistry", "A schema registry with Confluent's API: urls (of instances of one registry), auth {username, password, or token}, tls {ca, cert, key (PEM texts), "+
					"serverName, insecureSkipVerify}, timeout of a request. What it has said is kept in the checkpoint under the connection's name: another registry needs another name."),
				kind("postgres", "A PostgreSQL database: url, as postgres://user:password@host:5432/database?sslmode=verify-full, with special characters of the password as %XX, or without it and the password in PGPASSWORD; connectTimeout (10s, or the url's connect_timeout), "+
					"lockTimeout (30s, the longest wait for a lock of somebody else), statementTimeout (5m, the longest that one statement may take, and writing a batch by COPY is one)."),
				kind("sqlite", "A SQLite database: path of its file, relative to the job file; lockTimeout (30s, the longest wait for another process's lock), "+
					"statementTimeout (5m, the longest that writing a sink's rows of a batch may take)."),
			},
		},
	}
}

func describeTransform() Field {
	return Field{
		Type: TypeObject,
		Fields: []Field{
			{
				Name: "name", Type: TypeName, Required: true, Example: "clean",
				Doc: "The transform's name. Its state hangs on it.",
			},
			{
				Name: "from", Type: TypeList, Elem: describeInput(), Required: true, Min: 1, Max: 64, Example: "[flights]",
				Doc: "What it reads: sources, transforms, or ports of transforms as name.port. A module with one input takes the " +
					"union in this order; else entries and inputs match by position.",
			},
			{
				Name: "module", Type: TypeModule, Required: true, Interpolated: true, Example: "./clean.wasm",
				Doc: "The WebAssembly module: a path, or sha256:<digest> for one that has run with this checkpoint: only its own modules/ is searched. Its file has at most 16 MiB, custom sections included: strip debug builds. " +
					"On a slow machine one of over 10 MB may not be compiled in the time that it has, and need --compile-here. Or stock:<name>, a transform that comes with " +
					"wasmill: the checkpoint keeps the code that ran first, until `wasmill run --update <transform>`. Later also <name>@<version>.",
			},
			{
				Name: "config", Type: TypeConfig, Default: "{}", Example: "{minDistance: 100}",
				Doc: "Handed to the module as JSON when it starts.",
			},
			describeLimits(),
		},
	}
}

func describeInput() *Field {
	return &Field{
		Type: TypeInput,
		Fields: []Field{
			{Name: "input", Type: TypeRef, Required: true, Example: "clean.flights", Doc: "A source, a transform, or name.port."},
			{
				Name: "keyBy", Type: TypeObject, Example: "{json: [/carrier, /origin]}",
				Doc: "Makes the stage keyed: records of one key meet in one lane, and the stage may keep state. Either all entries of a stage have it, or " +
					"none. Give one of the three. It becomes the record's key. A record without a key is set aside: see errors.",
				Fields: []Field{
					{Name: "key", Type: TypeBool, Example: "true", Doc: "The record's own key."},
					{Name: "header", Type: TypeString, Example: "user", Doc: "The value of a header."},
					{
						Name: "json", Type: TypePointers, Example: "[/carrier, /origin]",
						Doc: "JSON pointers into the value. One: the text of what stands there; several: a JSON array of them.",
					},
				},
			},
		},
	}
}

// MaxDepth is the deepest that calls of a module may nest: sandbox.MaxDepth, which this package does not import.
const MaxDepth = 1900

func describeLimits() Field {
	return Field{
		Name: "limits", Type: TypeObject, Doc: "What the module may use.", Example: "{memory: 64MiB, fuel: {call: 50000000, record: 2000000}}",
		Fields: []Field{
			{
				Name: "memory", Type: TypeSize, Default: "64MiB", Min: 64 * kib, Max: 2 * gib, Example: "64MiB",
				Doc: "Linear memory of one instance, a multiple of 64KiB.",
			},
			{
				Name: "fuel", Type: TypeObject, Doc: "Work, about one an instruction, charged alike on every machine. A call of the module may use `call`, and `record` for each of its records. There is no limit of wall-clock time, which would not be the same in a replay: fuel is the limit. 1,000,000,000 is up to a few seconds of a compiled module and minutes on an interpreter, so with a very large fuel a loop without end holds its batch up for hours or for ever.",
				Fields: []Field{
					{Name: "call", Type: TypeInt, Default: "50000000", Min: 1000, Max: math.MaxInt64 >> 11, Doc: "Fuel of a call. A stock: transform has 1000000000000 when it is not given."},
					{Name: "record", Type: TypeInt, Default: "2000000", Min: 1, Max: math.MaxInt64 >> 11, Doc: "Further fuel for each record."},
				},
			},
			{
				Name: "depth", Type: TypeInt, Default: "1000", Min: 16, Max: MaxDepth,
				Why: "every engine and processor has room for so much, so that a module fails alike on all of them",
				Doc: "How deep calls may nest inside the module.",
			},
			{
				Name: "output", Type: TypeSize, Default: "64MiB", Min: mib, Max: 4 * gib,
				Doc: "What one lane may emit in a batch.",
			},
			{
				Name: "log", Type: TypeSize, Default: "64KiB", Min: kib, Max: mib,
				Doc: "What one lane may log in a batch; what is over it is dropped and counted. It changes no output, so it is not part of " +
					"the revision: it may be changed at any time, and an earlier batch is replayed the same.",
			},
		},
	}
}
