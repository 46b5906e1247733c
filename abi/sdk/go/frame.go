package wasmill

// Where things lie in a frame and in a record of ABI 1, in bytes.
const (
	frameMagic    = 0x31464d57 // "WMF1"
	frameVersion  = 1
	frameCount    = 16
	frameRecords  = 20
	frameStride   = 24
	frameFields   = 28
	frameBatch    = 32
	frameSeed     = 64
	frameLane     = 80
	frameProgress = 96
	frameError    = 100

	recordSize     = 56
	recordKey      = 16
	recordValue    = 24
	recordHeaders  = 32 // address, count, kind, flags
	recordPlace    = 40 // partition or code, port, input
	recordIndex    = 48
	headerSize     = 16
	fieldSize      = 8
	flagFirst      = 1
	flagLast       = 2
	flagEventTime  = 1
	flagNotJSON    = 2
	kindDeadLetter = 16
	kindFail       = 17
	noIndex        = 0xffffffff
	maxHeaders     = 64
	maxText        = 1024
	nullWord       = 0xffffffff << 32 // address 0, length -1
)

// Batch is what is known of the batch, the same on every replay. Times are microseconds since 1970.
type Batch struct {
	ID            uint64
	Time          int64 // pinned
	LateWatermark int64 // records before it are late; 0 when there is none yet
	Watermark     int64 // no record before it is expected any more; 0 when there is none yet
	Seed          [2]uint64
	Lane, Chunk   uint32
	First, Last   bool // the lane's first frame, and its last, which holds no records
}
