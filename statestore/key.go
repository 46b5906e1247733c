package statestore

import (
	"encoding/binary"
	"fmt"
)

// Groups is the number of key groups of every keyed stage, fixed for ever.
const Groups = 64

// Limits of ABI 1 on what is stored.
const (
	MaxKey   = 4 << 10   // key and sub together
	MaxValue = 512 << 10 // value
)

// The domains of timers.
const (
	DomainEvent      = 0
	DomainProcessing = 1
	domains          = 2
)

// First bytes of the keys in the backend. Data keys are those of changelogs; the index is derived from them.
const (
	dataPrefix  = 0x10 // be16 transform, u8 group, be16 table, uvarint key length, key, sub
	indexPrefix = 0x11 // be64 expiry, then a data key
)

const (
	headLen     = 1 + 2 + 1 + 2             // of a data key, before the length of key
	maxDataKey  = headLen + 3 + 10 + MaxKey // a timer carries its time and two lengths
	timerKeyLen = 1 + 8                     // domain, time
	maxIndexKey = 1 + 8 + maxDataKey        // an expiry stands before the key
	maxStored   = 1 + 8 + MaxValue          // a value with its head
	signBit     = uint64(1) << 63           // flipped, so that negative times sort first
	timerTable  = 0                         // the table of timers; tables of the manifest come after it
)

// Entry names one entry of a lane's stage: a table by its place in the manifest, a key with its group, and sub.
type Entry struct {
	Group    uint8
	Table    uint16
	Key, Sub []byte
}

// Timer is one timer. Sub is what it carries.
type Timer struct {
	Domain   uint8
	AtMS     int64
	Group    uint8
	Key, Sub []byte
}

// appendHead appends the part of a data key that stands before the length of key.
func appendHead(dst []byte, transform uint16, group uint8, table uint16) []byte {
	return append(dst, dataPrefix, byte(transform>>8), byte(transform), group, byte(table>>8), byte(table))
}

// appendKey appends a whole data key.
func appendKey(dst []byte, transform uint16, group uint8, table uint16, key, sub []byte) []byte {
	dst = appendHead(dst, transform, group, table)
	dst = binary.AppendUvarint(dst, uint64(len(key)))
	return append(append(dst, key...), sub...)
}

// appendInstant appends what all timers of one domain and time in one group begin with.
func appendInstant(dst []byte, transform uint16, group, domain uint8, at int64) []byte {
	dst = appendHead(dst, transform, group, timerTable)
	dst = append(dst, timerKeyLen, domain)
	return binary.BigEndian.AppendUint64(dst, uint64(at)^signBit)
}

// appendTimer appends the data key of a timer.
func appendTimer(dst []byte, transform uint16, t *Timer) []byte {
	dst = appendInstant(dst, transform, t.Group, t.Domain, t.AtMS)
	dst = binary.AppendUvarint(dst, uint64(len(t.Key)))
	return append(append(dst, t.Key...), t.Sub...)
}

// dataKey is a data key taken apart.
type dataKey struct {
	transform, table uint16
	group            uint8
	key, sub         []byte
}

// parseKey takes a data key apart; the parts are views of it.
func parseKey(b []byte) (k dataKey, err error) {
	if len(b) <= headLen || b[0] != dataPrefix {
		return k, fmt.Errorf("%d bytes are no key of an entry", len(b))
	}
	k.transform, k.group, k.table = binary.BigEndian.Uint16(b[1:]), b[3], binary.BigEndian.Uint16(b[4:])
	if k.group >= Groups {
		return k, fmt.Errorf("key group %d of %d", k.group, Groups)
	}
	n, used := canonicalUvarint(b[headLen:])
	if used <= 0 || n > uint64(len(b)-headLen-used) {
		return k, fmt.Errorf("the length of a key is wrong")
	}
	b = b[headLen+used:]
	k.key, k.sub = b[:n:n], b[n:]
	return k, nil
}

// canonicalUvarint is binary.Uvarint that refuses a longer form than needed, which would be a second name for a key.
func canonicalUvarint(b []byte) (n uint64, used int) {
	n, used = binary.Uvarint(b)
	if used > 1 && b[used-1] == 0 {
		return 0, 0
	}
	return n, used
}

// parseTimer reads a timer out of an entry of the table of timers.
func parseTimer(k dataKey) (t Timer, err error) {
	if len(k.key) != timerKeyLen || k.key[0] >= domains {
		return t, fmt.Errorf("an entry among the timers is no timer")
	}
	n, used := canonicalUvarint(k.sub)
	if used <= 0 || n > uint64(len(k.sub)-used) {
		return t, fmt.Errorf("the length of a timer's key is wrong")
	}
	rest := k.sub[used:]
	return Timer{
		Domain: k.key[0], AtMS: int64(binary.BigEndian.Uint64(k.key[1:]) ^ signBit),
		Group: k.group, Key: rest[:n:n], Sub: rest[n:],
	}, nil
}

// Heads of stored values: a version in the upper half, flags in the lower.
const (
	valuePlain  = 0x10
	valueExpiry = 0x11 // be64 expiry in milliseconds follows
)

// appendStored appends a value with its head.
func appendStored(dst, value []byte, expiry int64) []byte {
	if expiry == 0 {
		return append(append(dst, valuePlain), value...)
	}
	dst = binary.BigEndian.AppendUint64(append(dst, valueExpiry), uint64(expiry)^signBit)
	return append(dst, value...)
}

// parseStored splits a stored value; the value is a view of it.
func parseStored(b []byte) (value []byte, expiry int64, err error) {
	switch {
	case len(b) > 0 && b[0] == valuePlain:
		return b[1:], 0, nil
	case len(b) >= 9 && b[0] == valueExpiry:
		expiry = int64(binary.BigEndian.Uint64(b[1:]) ^ signBit)
		if expiry == 0 {
			return nil, 0, fmt.Errorf("a value says that it expires and not when")
		}
		return b[9:], expiry, nil
	case len(b) > 0 && b[0]>>4 > valuePlain>>4:
		return nil, 0, fmt.Errorf("a value of format %d: %w", b[0]>>4, ErrNewer)
	}
	return nil, 0, fmt.Errorf("%d bytes are no stored value", len(b))
}

// expired says whether an entry is hidden at a batch time.
func expired(expiry, nowMS int64) bool { return expiry != 0 && expiry <= nowMS }

// appendIndex appends the key by which an entry is found when it expires.
func appendIndex(dst []byte, expiry int64, data []byte) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, indexPrefix), uint64(expiry)^signBit)
	return append(dst, data...)
}

// parseIndex takes an index key apart.
func parseIndex(b []byte) (expiry int64, data []byte, err error) {
	if len(b) <= 9 || b[0] != indexPrefix {
		return 0, nil, fmt.Errorf("%d bytes are no key of the index by expiry", len(b))
	}
	return int64(binary.BigEndian.Uint64(b[1:]) ^ signBit), b[9:], nil
}

// after is the first key above all that begin with prefix, or nil when there is none. It appends to dst.
func after(dst, prefix []byte) []byte {
	dst = append(dst[:0], prefix...)
	for i := len(dst) - 1; i >= 0; i-- {
		if dst[i] != 0xff {
			dst[i]++
			return dst[:i+1]
		}
	}
	return nil
}

// groupsOf is the range of key groups of a lane: group g belongs to lane g*lanes/Groups, as in the ABI.
func groupsOf(lane, lanes int) (from, to int) {
	return (lane*Groups + lanes - 1) / lanes, ((lane+1)*Groups + lanes - 1) / lanes
}
