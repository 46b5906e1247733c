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
}

// Table is one declared state table.
type Table struct {
	Name string
}
