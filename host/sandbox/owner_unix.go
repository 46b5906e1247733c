//go:build unix

package sandbox

import (
	"os"
	"syscall"
)

// foreignOwner says who a file belongs to, when that is not the user this process runs as.
func foreignOwner(info os.FileInfo) (uid int64, foreign bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int64(st.Uid), int64(st.Uid) != int64(os.Geteuid())
}
