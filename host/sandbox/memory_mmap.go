//go:build unix

package sandbox

import "golang.org/x/sys/unix"

// reserve takes address space; a page costs memory only when it is touched.
func reserve(size uint64) ([]byte, error) {
	return unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|noReserve)
}

// release gives address space back. It fails only for what was not reserved.
func release(b []byte) { _ = unix.Munmap(b) }
