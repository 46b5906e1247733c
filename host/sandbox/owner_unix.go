//go:build unix

package sandbox

import (
	"os"
	"syscall"
)

// ownedByUs says whether a file belongs to the user this process runs as.
func ownedByUs(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int64(st.Uid) == int64(os.Geteuid())
}
