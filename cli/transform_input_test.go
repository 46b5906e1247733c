package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

func TestUnpack(t *testing.T) {
	const text = "{\"n\":1}\n{\"n\":2}\n"
	var members bytes.Buffer
	for _, part := range []string{text[:5], text[5:]} { // a gzip file may have several
		z := gzip.NewWriter(&members)
		if _, err := z.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
	}
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	frame := enc.EncodeAll([]byte(text), nil)
	for name, packed := range map[string][]byte{"plain": []byte(text), "gzip": members.Bytes(), "zstd": frame} {
		if got, err := unpack(packed, 100); err != nil || string(got) != text {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	bomb := enc.EncodeAll(make([]byte, 3<<20), nil)
	for name, packed := range map[string][]byte{"cut gzip": members.Bytes()[:20], "cut zstd": frame[:len(frame)-3], "no gzip": []byte("\x1f\x8bxxxxxxxxxxxx"), "too much": bomb} {
		if got, err := unpack(packed, 1<<20); err == nil {
			t.Errorf("%s: %d bytes", name, len(got))
		}
	}
	if _, err := unpack(bomb, 1<<20); err == nil || !strings.Contains(err.Error(), "more than 1 MiB") {
		t.Errorf("too much: %v", err)
	}
}
