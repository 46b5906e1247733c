package files

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/fault"
)

// A log that cannot be written ends the job with a code, the place and a way out.
func TestUnwritable(t *testing.T) {
	for op, cases := range map[string]map[error]string{
		"create:before": {syscall.ENOSPC: CodeNoSpace, syscall.EDQUOT: CodeNoSpace, fs.ErrPermission: CodeUnwritable},
		"rename:before": {syscall.ENOSPC: CodeNoSpace, syscall.EIO: CodeUnwritable},
	} {
		for why, code := range cases {
			dir := t.TempDir()
			files := durable.Tap(durable.OS(), func(at, name string) error {
				if at == op {
					return fmt.Errorf("%s %s: %w", op, name, why)
				}
				return nil
			})
			err := logs{files: files, dir: dir}.write(0, []entry{{URI: "file:///in/a", Time: 1}}, false)
			f, ok := errors.AsType[*fault.Error](err)
			if !ok || f.Code() != code || f.Hint() == "" || f.Place == "" || !errors.Is(err, why) {
				t.Errorf("%s, %v: %v, want %s", op, why, err, code)
			}
		}
	}
}
