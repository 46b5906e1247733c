package statestore

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
)

var update = flag.Bool("update", false, "write the golden files anew")

const testQuery = "6f2ad1b0-0000-4000-8000-000000000001"

// sample is a batch's changes with all kinds of entries, in several blocks if it is large.
func sample(batch int64, entries int) (*meta, *changeSet) {
	m := &meta{Version: metaVersion, Query: testQuery, Batch: batch, IDs: &ids{Next: 2, Transforms: []transformID{
		{ID: 1, Name: "hourly", Next: 3, Tables: []tableID{{ID: 1, Name: "counts"}, {ID: 2, Name: "old", Retired: true, Expires: true}}},
	}}}
	r := &run{}
	r.put(appendTimer(nil, 1, &Timer{Domain: DomainProcessing, AtMS: -5, Group: 2, Key: []byte("k"), Sub: []byte("s")}), nil, 0)
	for i := range entries {
		r.put(appendKey(nil, 1, 3, 1, fmt.Appendf(nil, "key%06d", i), []byte("sub")), fmt.Appendf(nil, "value %d", i*7919), 0)
	}
	r.delete(appendKey(nil, 1, 4, 1, []byte("gone"), nil))
	r.put(appendKey(nil, 1, 5, 2, nil, nil), []byte("kept a while"), 1700000000000)
	r.finish(nil)
	set := &changeSet{}
	set.add(r)
	return m, set
}

func encodeSample(t testing.TB, batch int64, entries int) []byte {
	t.Helper()
	m, set := sample(batch, entries)
	var b bytes.Buffer
	if err := writeChangelog(context.Background(), &b, m, set); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The bytes on disk are the same for ever. The blocks of this file are too small to be worth compressing.
func TestChangelogIsAsItWas(t *testing.T) {
	got := encodeSample(t, 7, 2)
	name := filepath.Join("testdata", "changelog-1.hex")
	if *update {
		if err := os.WriteFile(name, []byte(hex.Dump(got)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if hex.Dump(got) != string(want) {
		t.Errorf("the format has changed:\n%s\nwant\n%s", hex.Dump(got), want)
	}
	m, set, digest, _, err := readChangelog(t.Context(), bytes.NewReader(got))
	if err != nil || m.Batch != 7 || set.entries != 5 || digest != "58e5195d2fc0edf6ec5453b24d4832df" {
		t.Errorf("read back %+v, %d entries, %s, %v", m, set.entries, digest, err)
	}
}

func TestChangelogReadsBack(t *testing.T) {
	for _, n := range []int{0, 1, 1000, 30_000} {
		b := encodeSample(t, 3, n)
		want, set := sample(3, n)
		m, got, digest, offset, err := readChangelog(t.Context(), bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		sum := set.digest()
		if digest != hex.EncodeToString(sum[:]) || got.entries != set.entries || got.bytes != set.bytes || offset != int64(len(b)) {
			t.Errorf("%d: %d entries, %d bytes, %s at %d", n, got.entries, got.bytes, digest, offset)
		}
		if fmt.Sprint(*m.IDs) != fmt.Sprint(*want.IDs) || got.runs[0].expiring[0].at != 1700000000000 {
			t.Errorf("%d: %+v", n, m.IDs)
		}
		for i, at := range set.runs[0].refs {
			k, v := set.runs[0].at(at)
			stored, found := got.get(hashKey(k), k)
			if !found || !bytes.Equal(stored, v) || (stored == nil) != (v == nil) || got.runs[0].search(k) != i {
				t.Fatalf("%d: entry %d is %x, %v", n, i, stored, found)
			}
		}
	}
}

// The digest does not hang on how entries are put into blocks.
func TestDigestDoesNotKnowBlocks(t *testing.T) {
	_, whole := sample(1, 5000)
	parts := &changeSet{}
	for i, r := 0, whole.runs[0]; i < len(r.refs); i += 77 {
		part := &run{}
		for _, at := range r.refs[i:min(i+77, len(r.refs))] {
			k, stored := r.at(at)
			if stored == nil {
				part.delete(k)
				continue
			}
			v, expiry, err := parseStored(stored)
			if err != nil {
				t.Fatal(err)
			}
			part.put(k, v, expiry)
		}
		part.finish(nil)
		parts.add(part)
	}
	if parts.digest() != whole.digest() || parts.entries != whole.entries {
		t.Error("the digest of parts differs")
	}
}

// Whatever byte is wrong or missing is seen, and named as damage.
func TestDamagedChangelogs(t *testing.T) {
	b := encodeSample(t, 7, 8_000)
	step := max(1, len(b)/500)
	refused := 0
	check := func(what string, damaged []byte) {
		t.Helper()
		_, _, _, offset, err := readChangelog(t.Context(), bytes.NewReader(damaged))
		if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrNewer) {
			t.Fatalf("%s: %v", what, err)
		}
		if offset < 0 || offset > int64(len(damaged)) {
			t.Fatalf("%s: offset %d of %d", what, offset, len(damaged))
		}
		refused++
	}
	for at := 0; at < len(b); at += step {
		flipped := bytes.Clone(b)
		flipped[at] ^= 1 << (at % 8)
		check(fmt.Sprintf("byte %d flipped", at), flipped)
		check(fmt.Sprintf("cut at %d", at), b[:at])
	}
	check("a byte more", append(bytes.Clone(b), 0))
	check("twice", append(bytes.Clone(b), b...))
	small := encodeSample(t, 7, 2)
	for at := range small {
		for bit := range 8 {
			flipped := bytes.Clone(small)
			flipped[at] ^= 1 << bit
			check(fmt.Sprintf("bit %d of byte %d flipped", bit, at), flipped)
		}
		check(fmt.Sprintf("cut at %d", at), small[:at])
		zeroed := bytes.Clone(small)
		if clear(zeroed[at:]); at < len(small)-1 {
			check(fmt.Sprintf("zeros from %d", at), zeroed)
		}
	}
	if refused < 1000 {
		t.Errorf("only %d damages tried", refused)
	}
}

// Blocks that change places, within a file or from another batch, are seen.
func TestBlocksKeepTheirPlaces(t *testing.T) {
	b, other := encodeSample(t, 7, 20_000), encodeSample(t, 8, 20_000)
	blocks := blocksOf(t, b)
	others := blocksOf(t, other)
	if len(blocks) < 6 {
		t.Fatalf("%d blocks", len(blocks))
	}
	swapped := slices.Clone(blocks)
	swapped[2], swapped[3] = swapped[3], swapped[2]
	foreign := slices.Clone(blocks)
	foreign[2] = others[2]
	for what, list := range map[string][][]byte{
		"swapped": swapped, "left out": slices.Delete(slices.Clone(blocks), 2, 3), "doubled": slices.Insert(slices.Clone(blocks), 2, blocks[2]), "foreign": foreign,
	} {
		if _, _, _, _, err := readChangelog(t.Context(), bytes.NewReader(slices.Concat(list...))); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// blocksOf cuts a changelog into its head, blocks and end.
func blocksOf(t *testing.T, b []byte) (out [][]byte) {
	t.Helper()
	le := binary.LittleEndian
	n := headFixed + int(le.Uint32(b[8:])) + checksumLen
	for {
		out = append(out, b[:n])
		if b = b[n:]; len(b) == 0 {
			return out
		}
		n = endLen
		if b[0] != blockEnd {
			n = blockHead + int(le.Uint32(b[12:])) + checksumLen
		}
	}
}

// hostile writes a changelog with right checksums around what is given.
func hostile(t *testing.T, head string, entries ...[]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := newBlockWriter(&out, changelogMagic, changelogVersion, []byte(head))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := w.entries(e, 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.finish(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func entryOf(key, stored []byte) []byte {
	b := append(binary.AppendUvarint(nil, uint64(len(key))), key...)
	if stored == nil {
		return append(b, 0)
	}
	return append(binary.AppendUvarint(b, uint64(len(stored)+1)), stored...)
}

func TestHostileChangelogs(t *testing.T) {
	const head = `{"version":1,"query":"q","batch":1,"ids":{"next":2,"transforms":[{"id":1,"name":"a","next":2,"tables":[{"id":1,"name":"t"}]}]}}`
	key := appendKey(nil, 1, 3, 1, []byte("key"), nil)
	good := entryOf(key, []byte{valuePlain, 'v'})
	if _, _, _, _, err := readChangelog(t.Context(), bytes.NewReader(hostile(t, head, good))); err != nil {
		t.Fatalf("the good one: %v", err)
	}
	for what, b := range map[string][]byte{
		"no head":            hostile(t, "", good),
		"null head":          hostile(t, "null", good),
		"no ids":             hostile(t, `{"version":1,"query":"q","batch":1}`, good),
		"id twice":           hostile(t, strings.Replace(head, `"tables":[`, `"tables":[{"id":1,"name":"u"},`, 1), good),
		"id above next":      hostile(t, strings.Replace(head, `"id":1,"name":"t"`, `"id":2,"name":"t"`, 1), good),
		"id 0":               hostile(t, strings.Replace(head, `"id":1,"name":"t"`, `"id":0,"name":"t"`, 1), good),
		"negative batch":     hostile(t, strings.Replace(head, `"batch":1`, `"batch":-1`, 1), good),
		"order":              hostile(t, head, good, good),
		"unknown table":      hostile(t, head, entryOf(appendKey(nil, 1, 3, 2, nil, nil), []byte{valuePlain})),
		"unknown transform":  hostile(t, head, entryOf(appendKey(nil, 2, 3, 1, nil, nil), nil)),
		"group 64":           hostile(t, head, entryOf(appendKey(nil, 1, 64, 1, nil, nil), nil)),
		"no value head":      hostile(t, head, entryOf(key, []byte{})),
		"unknown value head": hostile(t, head, entryOf(key, []byte{0x12})),
		"short expiry":       hostile(t, head, entryOf(key, []byte{valueExpiry, 0, 0})),
		"no timer":           hostile(t, head, entryOf(appendKey(nil, 1, 3, 0, []byte("x"), nil), []byte{valuePlain})),
		"timer of domain 2":  hostile(t, head, entryOf(appendTimer(nil, 1, &Timer{Domain: 2}), []byte{valuePlain})),
		"timer without key":  hostile(t, head, entryOf(appendInstant(nil, 1, 3, 0, 5), []byte{valuePlain})),
		"index key":          hostile(t, head, entryOf(appendIndex(nil, 5, key), []byte{valuePlain})),
		"long uvarint":       hostile(t, head, append([]byte{0x80 | byte(len(key)), 0}, append(key, 0)...)),
		"key too long":       hostile(t, head, entryOf(append(key, make([]byte, maxDataKey)...), nil)),
		"lying length":       hostile(t, head, binary.AppendUvarint(nil, 1<<40)),
	} {
		_, _, _, _, err := readChangelog(t.Context(), bytes.NewReader(b))
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, b := range map[string][]byte{
		"value":  hostile(t, head, entryOf(key, []byte{0x20, 'v'})),
		"ids":    hostile(t, strings.Replace(head, `"version":1`, `"version":2`, 1), good),
		"format": append([]byte("WMC1\x02\x00"), make([]byte, 100)...),
	} {
		if _, _, _, _, err := readChangelog(t.Context(), bytes.NewReader(b)); !errors.Is(err, ErrNewer) {
			t.Errorf("a newer %s: %v", what, err)
		}
	}
}

// A block that unpacks to more than it says, or a length that lies, takes no memory.
func TestHostileChangelogsTakeNoMemory(t *testing.T) {
	b := encodeSample(t, 7, 20_000)
	blocks := blocksOf(t, b)
	reseal := func(head, block []byte) []byte {
		chain := xxh3.HashSeed(head[:len(head)-checksumLen], 0)
		return binary.LittleEndian.AppendUint64(slices.Clone(block[:len(block)-checksumLen]), xxh3.HashSeed(block[:len(block)-checksumLen], chain))
	}
	short := bytes.Clone(blocks[1])
	binary.LittleEndian.PutUint32(short[8:], binary.LittleEndian.Uint32(short[8:])-100)
	huge := bytes.Clone(blocks[1])
	binary.LittleEndian.PutUint32(huge[8:], maxBlock+1)
	long := bytes.Clone(blocks[0])
	binary.LittleEndian.PutUint32(long[8:], maxHead)
	for what, f := range map[string][]byte{
		"short": slices.Concat(blocks[0], reseal(blocks[0], short)), "huge": slices.Concat(blocks[0], reseal(blocks[0], huge)), "head": long,
	} {
		allocated := testing.AllocsPerRun(1, func() {
			if _, _, _, _, err := readChangelog(t.Context(), bytes.NewReader(f)); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s: %v", what, err)
			}
		})
		if allocated > 1000 {
			t.Errorf("%s: %v allocations", what, allocated)
		}
	}
}

func FuzzReadChangelog(f *testing.F) {
	f.Add(encodeSample(f, 7, 2))
	f.Add(encodeSample(f, 7, 3000))
	f.Add([]byte("WMC1\x01\x00\x00\x00\x02\x00\x00\x00{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, set, digest, offset, err := readChangelog(context.Background(), bytes.NewReader(b))
		if err != nil {
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrNewer) {
				t.Fatal(err)
			}
			return
		}
		sum := set.digest()
		if hex.EncodeToString(sum[:]) != digest || offset != int64(len(b)) {
			t.Errorf("digest %s, read %s, %d of %d bytes", hex.EncodeToString(sum[:]), digest, offset, len(b))
		}
	})
}

func FuzzParseKey(f *testing.F) {
	f.Add(appendKey(nil, 1, 3, 1, []byte("key"), []byte("sub")))
	f.Add(appendTimer(nil, 1, &Timer{AtMS: 5, Key: []byte("k")}))
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := parseKey(b)
		if err != nil {
			return
		}
		if got := appendKey(nil, k.transform, k.group, k.table, k.key, k.sub); !bytes.Equal(got, b) {
			t.Errorf("%x has the parts of %x", b, got)
		}
		if k.table != timerTable {
			return
		}
		if tm, err := parseTimer(k); err == nil {
			if got := appendTimer(nil, k.transform, &tm); !bytes.Equal(got, b) {
				t.Errorf("timer %x has the parts of %x", b, got)
			}
		}
	})
}

// Every operation that fails while a changelog is written is an error, and another attempt succeeds.
func TestWritingFails(t *testing.T) {
	m, set := sample(3, 8_000)
	for when := faulty.Before; when <= faulty.After; when++ {
		for n := 1; ; n++ {
			fs := faulty.New()
			p := fs.Process()
			if err := durable.MakeDir(p, "/c"); err != nil {
				t.Fatal(err)
			}
			failed := false
			seen := 0
			fs.SetFaults(func(op faulty.Op) faulty.Fault {
				if !op.Writes() {
					return faulty.Fault{}
				}
				if seen++; seen != n {
					return faulty.Fault{}
				}
				failed = true
				return faulty.Fault{Err: errors.New("broken"), When: when}
			})
			c := changelogFiles{p, "/c"}
			err := c.write(t.Context(), "3-aa", m, set)
			if !failed {
				if err != nil || n < 4 {
					t.Fatalf("operation %d: %v", n, err)
				}
				break
			}
			if err == nil {
				t.Errorf("operation %d failed, and nothing was said", n)
			}
			if err := c.write(t.Context(), "3-aa", m, set); err != nil {
				t.Errorf("after operation %d: %v", n, err)
			}
			want := encodeSample(t, 3, 8_000)
			if b, err := durable.ReadFile(fs.Crash(nil, 0).Process(), "/c/3-aa", 1<<30); err != nil || !bytes.Equal(b, want) {
				t.Errorf("after operation %d: %d bytes, %v", n, len(b), err)
			}
		}
	}
}
