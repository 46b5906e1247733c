package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/fault"
)

// maxBenchInput is the most that is read of records for a measurement, and that they may be unpacked: bytes.
const maxBenchInput = 256 << 20

// maxBenchWindow is the most memory that unpacking zstd may take besides, as in the source of files.
const maxBenchWindow = 128 << 20

// linesOf are the lines of a file that are not empty, nil without a file. It goes by the first bytes of the file whether it
// is packed with gzip or zstd, as a source does.
func (e *Env) linesOf(file string) ([][]byte, error) {
	if file == "" {
		return nil, nil
	}
	text, err := durable.ReadFile(e.Files, file, maxBenchInput)
	if err != nil {
		return nil, fault.New(CodeBenchInput, file, fmt.Errorf("read the records: %w", err), fmt.Sprintf("name a file of at most %d MiB that you may read", maxBenchInput>>20))
	}
	if text, err = unpack(text, maxBenchInput); err != nil {
		return nil, fault.New(CodeBenchInput, file, fmt.Errorf("unpack the records: %w", err), "copy the file again, or take a smaller one")
	}
	var lines [][]byte
	for line := range bytes.Lines(text) {
		if line = bytes.TrimRight(line, "\r\n"); len(line) > 0 {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return nil, fault.New(CodeBenchInput, file, errors.New("it holds no record"), "write one record a line")
	}
	return lines, nil
}

// unpack is the content of a file in gzip or zstd, which is at most so many bytes, or the file as it is.
func unpack(packed []byte, most int64) ([]byte, error) {
	var dec io.Reader
	switch {
	case bytes.HasPrefix(packed, []byte("\x1f\x8b")):
		members, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		dec = members
	case bytes.HasPrefix(packed, []byte("\x28\xb5\x2f\xfd")):
		frames, err := zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxBenchWindow))
		if err != nil {
			return nil, fmt.Errorf("zstd: %w", err)
		}
		defer frames.Close()
		dec = frames
	default:
		return packed, nil
	}
	text, err := io.ReadAll(io.LimitReader(dec, most+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(text)) > most:
		return nil, fmt.Errorf("it is more than %d MiB", most>>20)
	}
	return text, nil
}
