package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"path"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
)

func spooled(parts []Spooled) []Spooled {
	var out []Spooled
	for _, p := range parts {
		p.Data = [][]byte{bytes.Join(p.Data, nil)}
		out = append(out, p)
	}
	return out
}

func sameSpool(a, b []Spooled) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Sink != b[i].Sink || a[i].Lane != b[i].Lane || a[i].Records != b[i].Records || !bytes.Equal(a[i].Data[0], b[i].Data[0]) {
			return false
		}
	}
	return true
}

func TestSpoolComesBack(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(rt *rapid.T) {
		disk := faulty.New()
		proc := disk.Process()
		l, err := Open(ctx, proc, "ck", options())
		if err != nil {
			rt.Fatal(err)
		}
		parts := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) Spooled {
			return Spooled{
				Sink: rapid.StringN(0, 20, 60).Draw(rt, "sink"), Lane: rapid.Uint32().Draw(rt, "lane"),
				Records: rapid.Int64().Draw(rt, "records"),
				Data:    rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 200), 0, 4).Draw(rt, "data"),
			}
		}), 0, 6).Draw(rt, "parts")
		d := decision(7)
		if err := l.PutSpool(ctx, d.Batch, d.Attempt, d.Digest, parts); err != nil {
			rt.Fatal(err)
		}
		proc.Kill()
		again, err := Open(ctx, disk.Crash(rand.New(rand.NewPCG(1, 2)), 0).Process(), "ck", options())
		if err != nil {
			rt.Fatal(err)
		}
		got, err := again.Spool(ctx, &d)
		if err != nil {
			rt.Fatal(err)
		}
		if !sameSpool(got, spooled(parts)) {
			rt.Fatalf("wrote %v, read %v", parts, got)
		}
	})
}

// TestSpoolDamage changes each byte of a spool file, and cuts it everywhere: none of it is taken for whole.
func TestSpoolDamage(t *testing.T) {
	ctx := context.Background()
	disk := faulty.New()
	files := disk.Process()
	l := open(t, files, "ck")
	d := decision(7)
	must(t, l.PutSpool(ctx, d.Batch, d.Attempt, d.Digest, []Spooled{
		{Sink: "out", Lane: 1, Records: 2, Data: [][]byte{[]byte("abc"), []byte("def")}}, {Sink: "dead", Records: 1, Data: [][]byte{[]byte("x")}},
	}))
	name := path.Join("ck", spoolName(d.Batch, d.Attempt))
	whole, err := durable.ReadFile(files, name, maxSpool)
	must(t, err)
	put := func(content []byte) {
		must(t, files.Remove(name))
		must(t, durable.WriteFile(files, name, content))
	}
	for i := range whole {
		bad := bytes.Clone(whole)
		bad[i] ^= 0x40
		put(bad)
		wantBadSpool(t, l, &d)
		put(whole[:i])
		wantBadSpool(t, l, &d)
	}
	put(append(bytes.Clone(whole), 0))
	wantBadSpool(t, l, &d)
	other := d
	other.Digest = "00"
	put(whole)
	wantBadSpool(t, l, &other)
	if _, err := l.Spool(ctx, &d); err != nil {
		t.Errorf("the whole file: %v", err)
	}
}

func wantBadSpool(t *testing.T, l *Log, d *Decision) {
	t.Helper()
	parts, err := l.Spool(context.Background(), d)
	var coded *Error
	if !errors.As(err, &coded) || coded.ErrCode != CodeDamaged && coded.ErrCode != CodeFuture || parts != nil {
		t.Fatalf("damaged, and read as %v, %v", parts, err)
	}
}

func TestSpoolOfAnotherKind(t *testing.T) {
	l := open(t, faulty.New().Process(), "ck")
	d := decision(3)
	parts, err := l.Spool(context.Background(), &d)
	if parts != nil || err != nil {
		t.Errorf("nothing was kept, and read as %v, %v", parts, err)
	}
	d.Attempt = "../../metadata"
	if parts, err = l.Spool(context.Background(), &d); parts != nil || err != nil {
		t.Errorf("a name that is no attempt: %v, %v", parts, err)
	}
}

// TestSpoolIsDropped: what is published is removed, also what earlier attempts and processes left; later batches stay.
func TestSpoolIsDropped(t *testing.T) {
	ctx := context.Background()
	disk := faulty.New()
	files := disk.Process()
	first := open(t, files, "ck")
	for _, p := range []struct {
		id      BatchID
		attempt string
	}{{6, "0000000a"}, {7, "0000000b"}, {7, "0000000c"}} {
		must(t, first.PutSpool(ctx, p.id, p.attempt, "dd", nil))
	}
	must(t, first.Close())
	second := open(t, files, "ck")
	must(t, second.PutSpool(ctx, 8, "0000000d", "dd", nil))
	must(t, second.DropSpool(ctx, 7))
	left, err := files.List("ck/spool")
	must(t, err)
	if len(left) != 1 || left[0].Name != "8-0000000d" {
		t.Errorf("left are %v", left)
	}
	third := open(t, disk.Process(), "other")
	must(t, third.DropSpool(ctx, 7))
	must(t, third.PutSpool(ctx, 8, "0000000d", "dd", nil))
}

func FuzzReadSpool(f *testing.F) {
	f.Add([]byte("WMSP\x01"))
	f.Add([]byte("WMSP\x01\x02\x00\x00\x00{}\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if parts, err := readSpool(b, spoolHead{}); err == nil && len(parts) > len(b) {
			t.Errorf("%d parts of %d bytes", len(parts), len(b))
		}
		_, _ = readSpoolParts(b)
	})
}
