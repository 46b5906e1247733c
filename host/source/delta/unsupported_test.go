package delta_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/source"
	"github.com/wasmill/wasmill/host/source/delta"
)

// A file with a compression that is not read stops the source when it is planned, and is not called broken.
func TestUnreadCompression(t *testing.T) {
	_, err := golden(t, filepath.Join("..", "lz4")).Latest(ctx, checkpoint.Position{}, source.Limit{})
	wantFault(t, err, delta.CodeCorrupt, "lz4hadoop.parquet", "whole", "LZ4 in Hadoop's frames")
	if f, _ := errors.AsType[*fault.Error](err); f == nil || !strings.Contains(f.Hint(), "spark.sql.parquet.compression.codec") {
		t.Errorf("%v", err)
	}
}
