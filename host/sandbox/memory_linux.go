package sandbox

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

const noReserve = unix.MAP_NORESERVE

// reset gives the pages of a region back to the system: where the image is mapped it is seen again, the rest is zero.
func reset(b []byte) bool {
	return len(b) == 0 || unix.Madvise(b, unix.MADV_DONTNEED) == nil
}

// backing is an image in a file of memory that nothing can change any more. Regions map it copy-on-write.
type backing struct {
	fd, size int
}

// newBacking copies an image.
func newBacking(image []byte) (backing, error) {
	if len(image) == 0 {
		return backing{}, nil
	}
	fd, err := unix.MemfdCreate("wasmill-image", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return backing{}, fmt.Errorf("make a file of memory: %w", err)
	}
	b := backing{fd: fd, size: len(image)}
	for at := 0; at < len(image) && err == nil; {
		var n int
		n, err = unix.Pwrite(fd, image[at:], int64(at))
		at += n
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err != nil {
		b.close()
		return backing{}, fmt.Errorf("write the image of a guest: %w", err)
	}
	return b, nil
}

// put maps the image over the beginning of a region.
func (b backing) put(region []byte) error {
	if b.size == 0 {
		return nil
	}
	_, err := unix.MmapPtr(b.fd, 0, unsafe.Pointer(unsafe.SliceData(region)), uintptr(b.size),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED)
	return err
}

// close gives the file up; what is mapped stays.
func (b backing) close() {
	if b.size > 0 {
		_ = unix.Close(b.fd) // nothing was written that could be lost
	}
}
