// Package abi is the contract between the Wasmill host and a transform compiled to WebAssembly, version 1.
//
// README.md in this folder is the specification; this package is the host's codec for it: the records and frames as they
// lie in linear memory, the scanner that finds declared JSON fields, the state operations, the manifest, the key hash and
// the digest of logical records. It knows nothing of WebAssembly engines, batches or sinks, imports nothing of ours and
// holds no mutable state. It never trusts an address, a length or a count that came from a guest.
package abi

// Sizes and counts that the contract fixes.
const (
	Version = 1

	FrameHeaderSize  = 128
	RecordSize       = 56
	FieldSize        = 8
	HeaderEntrySize  = 16
	StateOpSize      = 56
	Alignment        = 16
	Overrun          = 16
	MaxChunkRecords  = 1024
	MaxChunkBytes    = 262144
	MaxFrame         = 262288
	MaxRecord        = 16 << 20
	MaxHeaders       = 64
	MaxFields        = 64
	MaxPorts         = 16
	MaxTables        = 64
	MaxStateKey      = 4 << 10
	MaxStateValue    = 512 << 10
	MaxReason        = 1 << 10
	MaxLogLine       = 1 << 10
	MaxManifest      = 64 << 10
	DefaultOutput    = 64 << 20
	DefaultFuelCall  = 50_000_000
	DefaultFuelChunk = 2_000_000
	KeyGroups        = 64
)

// NoIndex is the record index of what stems from no input: a timer, or output without an origin.
const NoIndex = 0xffffffff

// Frame flags.
const (
	FlagFirst = 1 // the lane's first frame
	FlagLast  = 2 // the lane's end: a frame of its own without records
)

// Record flags.
const (
	FlagEventTime = 1 // the record has an event time
	FlagNotJSON   = 2 // input only: the value is not one JSON text in UTF-8
)

// Kind says what a record is. On input 0 to 2, on output 0, 16 and 17.
type Kind uint8

// The kinds of ABI 1.
const (
	KindRecord          Kind = 0
	KindEventTimer      Kind = 1
	KindProcessingTimer Kind = 2
	KindDeadLetter      Kind = 16
	KindFail            Kind = 17
)

// FieldKind is the JSON kind of a located field.
type FieldKind uint8

// The field kinds of ABI 1. A string's text is without its quotes.
const (
	FieldAbsent FieldKind = iota
	FieldNull
	FieldFalse
	FieldTrue
	FieldNumber
	FieldString
	FieldEscaped
	FieldObject
	FieldArray
)

// Field is where a declared JSON field lies in a record's value: Start and Len in bytes from the value's first byte.
type Field struct {
	Start, Len uint32
	Kind       FieldKind
}

// Header is one header of a record. A nil Value is null, an empty one is not.
type Header struct {
	Name, Value []byte
}

// Record is one record on either side of the boundary. Key and Value are null when nil. Whoever hands a Record over says
// how long its bytes stay valid; every function here treats them as read-only.
type Record struct {
	EventTime int64 // microseconds since 1970, whole milliseconds; meaningful with FlagEventTime
	Offset    int64
	Key       []byte
	Value     []byte
	Headers   []Header
	Partition int32 // for KindDeadLetter and KindFail: the code
	Port      uint16
	Input     uint16
	Index     uint32
	Kind      Kind
	Flags     uint8
	Fields    []Field // as many as the input port declares
}

// FrameHeader is what the host says with every frame.
type FrameHeader struct {
	Flags         uint16
	Batch         uint64
	BatchTime     int64 // microseconds
	LateWatermark int64 // microseconds, 0 none yet
	Watermark     int64 // microseconds, 0 none yet
	Seed          [2]uint64
	Lane, Chunk   uint32
	Fuel          uint64
}

// TrapName names why a guest was stopped. The list is closed and equal on every engine.
type TrapName string

// The traps of ABI 1.
const (
	TrapUnreachable     TrapName = "unreachable"
	TrapMemory          TrapName = "memory"
	TrapTable           TrapName = "table"
	TrapIndirect        TrapName = "indirect"
	TrapIntegerOverflow TrapName = "integer_overflow"
	TrapDivide          TrapName = "divide"
	TrapConversion      TrapName = "conversion"
	TrapDepth           TrapName = "depth"
	TrapFuel            TrapName = "fuel"
	TrapExit            TrapName = "exit"
	TrapEmit            TrapName = "emit"
	TrapState           TrapName = "state"
	TrapQuota           TrapName = "quota"
	TrapTooLarge        TrapName = "too_large"
	TrapAbort           TrapName = "abort"
)

// Violation is a guest's breach of the contract, found by the codec. The sandbox turns it into a trap of that name.
type Violation struct {
	Trap   TrapName
	Detail string
}

// Error is the trap and what was wrong.
func (v *Violation) Error() string { return string(v.Trap) + ": " + v.Detail }
