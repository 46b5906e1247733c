package kafka

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// storedAs wraps packed records as a stored batch; only its codec counts.
func storedAs(codec byte, packed []byte) []byte {
	raw := make([]byte, batchHeader, batchHeader+len(packed))
	raw[atChecked+1] = codec
	return append(raw, packed...)
}

func packGzip(t testing.TB, in []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	must(t, w.Write, in)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func must(t testing.TB, write func([]byte) (int, error), in []byte) {
	t.Helper()
	if _, err := write(in); err != nil {
		t.Fatal(err)
	}
}

func packLZ4(t testing.TB, in []byte, opts ...lz4.Option) []byte {
	var out bytes.Buffer
	w := lz4.NewWriter(&out)
	if err := w.Apply(opts...); err != nil {
		t.Fatal(err)
	}
	must(t, w.Write, in)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// packZstd packs with the size in the frame, or as a stream that does not know it, as Java's producers do.
func packZstd(t testing.TB, in []byte, stream bool) []byte {
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	if !stream {
		return w.EncodeAll(in, nil)
	}
	for len(in) > 0 { // a stream that is written at once knows its size too
		n := min(len(in), 100_000)
		must(t, w.Write, in[:n])
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		in = in[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func packXerial(in []byte) []byte {
	out := append(bytes.Clone(xerial), 0, 0, 0, 1, 0, 0, 0, 1)
	for len(in) > 0 {
		n := min(len(in), 32<<10)
		block := s2.EncodeSnappy(nil, in[:n])
		out = append(binary.BigEndian.AppendUint32(out, uint32(len(block))), block...)
		in = in[n:]
	}
	return out
}

// TestGauge: what a stored batch unpacks to is told of each codec, whatever its producer has written down: exactly, or a bit
// too high where that saves work.
func TestGauge(t *testing.T) {
	noise := make([]byte, 300_000)
	rng := rand.NewChaCha8([32]byte{1})
	must(t, rng.Read, noise)
	text := bytes.Repeat([]byte(`{"order":"a-17","amount":12.5,"note":"as usual"}`), 5000)
	for name, in := range map[string][]byte{
		"zeros": make([]byte, 900_000), "noise": noise, "text": text, "mixed": append(noise[:1000:1000], text[:777]...), "short": []byte("a"),
	} {
		size := int64(len(in))
		for codec, c := range map[string]struct {
			codec  byte
			packed []byte
			want   int64
		}{
			"none":         {codecNone, in, size},
			"gzip":         {codecGzip, packGzip(t, in), size},
			"gzip twice":   {codecGzip, append(packGzip(t, in), packGzip(t, []byte("end"))...), size + 3},
			"snappy":       {codecSnappy, s2.EncodeSnappy(nil, in), size},
			"xerial":       {codecSnappy, packXerial(in), size},
			"lz4":          {codecLZ4, packLZ4(t, in), size},
			"lz4 of Java":  {codecLZ4, packLZ4(t, in, lz4.BlockSizeOption(lz4.Block64Kb), lz4.ChecksumOption(false)), size},
			"lz4 in full":  {codecLZ4, packLZ4(t, in, lz4.SizeOption(uint64(len(in))), lz4.BlockChecksumOption(true)), size},
			"lz4 twice":    {codecLZ4, append(packLZ4(t, in), packLZ4(t, in)...), 2 * size},
			"zstd":         {codecZstd, packZstd(t, in, false), size},
			"zstd of Java": {codecZstd, packZstd(t, in, true), size},
			"zstd twice":   {codecZstd, append(packZstd(t, []byte("a"), false), packZstd(t, in, false)...), size + 1},
		} {
			g := gauge{max: 10 << 20}
			most := c.want
			if codec == "zstd of Java" {
				most = max(most, closeEnough*int64(len(c.packed)))
			}
			if got := g.size(storedAs(c.codec, c.packed)); got < c.want || got > most {
				t.Errorf("%s, %s: %d bytes, want %d", name, codec, got, c.want)
			}
			g.close()
			g = gauge{max: 1000}
			if got := g.size(storedAs(c.codec, c.packed)); got != min(c.want, 1000) {
				t.Errorf("%s, %s: %d bytes, want %d at most", name, codec, got, 1000)
			}
			g.close()
		}
	}
}

// FuzzGauge: whatever is stored, it is weighed within the bounds.
func FuzzGauge(f *testing.F) {
	for codec := range byte(6) {
		f.Add(codec, []byte{})
		f.Add(codec, packLZ4(f, []byte("abcabcabcabcabcabc")))
		f.Add(codec, packGzip(f, []byte("abc")))
		f.Add(codec, packXerial([]byte("abc")))
		f.Add(codec, packZstd(f, []byte("abc"), true))
	}
	g := gauge{max: 1 << 20}
	f.Fuzz(func(t *testing.T, codec byte, packed []byte) {
		if n := g.size(storedAs(codec&attrCodec, packed)); n < 0 || n > g.max {
			t.Fatalf("%d bytes", n)
		}
	})
}

// BenchmarkGauge weighs stored batches of 16 KiB of text whose producers wrote no size down.
func BenchmarkGauge(b *testing.B) {
	text := bytes.Repeat([]byte(`{"order":"a-17","amount":12.5,"note":"as usual"}`), 340)
	for i := range text {
		if i%5 == 0 {
			text[i] = 'a' + byte(i*i/7%26)
		}
	}
	for name, raw := range map[string][]byte{
		"zstd": storedAs(codecZstd, packZstd(b, text, true)), "lz4": storedAs(codecLZ4, packLZ4(b, text)),
	} {
		b.Run(name, func(b *testing.B) {
			g := gauge{max: 1 << 20}
			defer g.close()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if n := g.size(raw); n < int64(len(text)) {
					b.Fatalf("%d bytes", n)
				}
			}
		})
	}
}
