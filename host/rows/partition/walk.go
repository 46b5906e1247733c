package partition

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// Walk calls visit for each regular file of a table, with its path relative to root: those in root and, depth levels down, those in the folders
// of partitions. Folders that are not there, or go away meanwhile, hold no files.
func Walk(ctx context.Context, files durable.Files, root string, depth int, visit func(rel string, i durable.Info) error) error {
	return walk(ctx, files, root, "", depth, visit)
}

func walk(ctx context.Context, files durable.Files, root, dir string, depth int, visit func(string, durable.Info) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	infos, err := files.List(path.Join(root, dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, i := range infos {
		rel := path.Join(dir, i.Name)
		switch {
		case i.Dir && depth > 0 && strings.Contains(i.Name, "="):
			err = walk(ctx, files, root, rel, depth-1, visit)
		case i.Regular:
			err = visit(rel, i)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
