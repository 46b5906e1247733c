package checkpoint

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

const (
	// maxRevision bounds a revision's JSON.
	maxRevision = 64 << 20
	// maxModule bounds a module.
	maxModule = 256 << 20
)

func revisionName(sha string) string { return revisionsDir + "/" + sha + ".json" }
func moduleName(sha string) string   { return modulesDir + "/" + sha + ".wasm" }

// PutRevision keeps the canonical JSON of a revision durably, under its sha256. It must return before the first decision
// that names the revision is written. What is known to be durable is not written again.
func (l *Log) PutRevision(ctx context.Context, sha string, canonical []byte) error {
	return l.putArtifact(ctx, revisionName(sha), sha, canonical)
}

// PutModule keeps a module durably, under its sha256, like PutRevision.
func (l *Log) PutModule(ctx context.Context, sha string, wasm []byte) error {
	return l.putArtifact(ctx, moduleName(sha), sha, wasm)
}

// Revision returns the canonical JSON of a revision.
func (l *Log) Revision(ctx context.Context, sha string) ([]byte, error) {
	return readArtifact(ctx, l.files, l.dir, revisionName(sha), sha, maxRevision)
}

// Module returns a module.
func (l *Log) Module(ctx context.Context, sha string) ([]byte, error) {
	return readArtifact(ctx, l.files, l.dir, moduleName(sha), sha, maxModule)
}

func (l *Log) putArtifact(ctx context.Context, name, sha string, content []byte) error {
	if shaOf(content) != sha {
		return l.bug("%s is not the sha256 of what should be kept as %s", sha, name)
	}
	l.keep.use(name)
	if l.proven[name] {
		return nil
	}
	// What is there already may not be durable, as its writer may have died, or may be damaged: the name says what it
	// must hold.
	if err := l.objects.Replace(ctx, name, content); err != nil {
		return ioError("write", name, err)
	}
	l.proven[name] = true
	return nil
}

// prove notes what a decision that was just read says to be durable: its revision and the modules named in it were
// synced before it was written. A revision that cannot be read proves nothing.
func (l *Log) prove(ctx context.Context, sha string) {
	revision, err := l.Revision(ctx, sha)
	if err != nil {
		return
	}
	l.proven[revisionName(sha)] = true
	infos, err := l.objects.List(ctx, modulesDir)
	if err != nil {
		return
	}
	for _, e := range infos {
		module := strings.TrimSuffix(e.Name, ".wasm")
		if !isSHA(module) || !bytes.Contains(revision, []byte(module)) {
			continue
		}
		if _, err := l.Module(ctx, module); err == nil {
			l.proven[moduleName(module)] = true
		}
	}
}

func readArtifact(ctx context.Context, files durable.Files, dir, name, sha string, limit int64) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !isSHA(sha) {
		return nil, errorf(CodeInvalid, wayVerify, nil, "%.80q is no sha256", sha)
	}
	content, err := durable.ReadFile(files, path.Join(dir, name), limit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errorf(CodeMissing, wayVerify, []string{name}, "it is not kept: %w", fs.ErrNotExist)
	}
	if err != nil {
		return nil, ioError("read", name, err)
	}
	if shaOf(content) != sha {
		return nil, errorf(CodeDamaged, "run the job with the same module once more, which writes it anew", []string{name}, "its content does not have the digest that is its name")
	}
	return content, nil
}

func shaOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func isSHA(text string) bool {
	return len(text) == 2*sha256.Size && strings.Trim(text, "0123456789abcdef") == ""
}
