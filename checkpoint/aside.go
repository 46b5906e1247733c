package checkpoint

import (
	"errors"
	"io/fs"
	"path"
	"strconv"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// moveAside takes a record out of its log and keeps it as `.N.<suffix>`. Hadoop's checksum goes first: one without its
// record would make Spark's next write of it fail.
func moveAside(files durable.Files, dir, log string, id BatchID, suffix string) error {
	if err := removeIfThere(files, path.Join(dir, crcName(log, id))); err != nil {
		return ioError("remove", crcName(log, id), err)
	}
	name := recordName(log, id)
	aside := log + "/." + strconv.FormatInt(int64(id), 10) + "." + suffix
	if err := files.Rename(path.Join(dir, name), path.Join(dir, aside)); err != nil {
		return ioError("move aside", name, err)
	}
	return ioError("sync", log, files.SyncDir(path.Join(dir, log)))
}

func removeIfThere(files durable.Files, name string) error {
	err := files.Remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
