package checkpoint

import (
	"io"
	"path"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// Hold keeps everybody else off a checkpoint that exists, until it is closed: no job runs on it meanwhile. Nothing but the
// lock is touched. holder is for people.
func Hold(files durable.Files, dir, holder string) (io.Closer, error) {
	if err := checkRoot(files, dir); err != nil {
		return nil, err
	}
	lock, err := files.Lock(path.Join(dir, lockFile), holder)
	if err != nil {
		return nil, ioError("lock", path.Join(dir, lockFile), err)
	}
	return lock, nil
}
