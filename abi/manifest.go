package abi

// Manifest is what a module says of itself in its custom section "wasmill", or in a sidecar file.
type Manifest struct {
	ABI     int
	Name    string
	Version string
	Inputs  []InputPort
	Outputs []OutputPort
	Tables  []Table
	Config  []byte // a JSON schema, nil when there is none
	// StateConfig names members of the config that the meaning of the state depends on. A host does not run the transform over
	// state that was made with another value of one of them.
	StateConfig []string
	// Delay says how far what comes out may lie behind the watermark in event time: the sum of some durations, each a text
	// such as "10s", or a JSON pointer to one in the config, which counts when it is there. Texts count when a pointer does.
	Delay []string
}

// InputPort is one declared input.
type InputPort struct {
	Name    string
	Content string
	Fields  []string // JSON pointers (RFC 6901) that the host locates
}

// OutputPort is one declared output; its number on the wire is its position.
type OutputPort struct {
	Name    string
	Content string
	// Updates says that its records are updates: a record replaces the earlier one with the same key, and one with a null
	// value takes it back.
	Updates bool
	// Rows is RowsVersion when its values are binary rows, of the Columns that stand there, as in "id: int64 not null, tags:
	// list<string>"; the contract does not look into that text. Otherwise it is 0.
	Rows    int
	Columns string
}

// Table is one declared state table.
type Table struct {
	Name string
	Type string // what its values are, one of the types below; "" stands for TableBytes, and ParseManifest never gives it
}

// The types of tables. They say how values are shown; the contract does not look at values.
const (
	TableBytes = "bytes" // any bytes; the type of a table that does not say one
	TableJSON  = "json"  // one JSON text
	TableI64   = "i64"   // 8 bytes, little-endian
)
