package demo

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openPTY makes a terminal: keyboard and screen on one side, what a program sees on the other.
func openPTY(t *testing.T, cols, rows uint16) (outside, inside *os.File) {
	t.Helper()
	outside, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	t.Cleanup(func() { _ = outside.Close() })
	fd := int(outside.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: cols, Row: rows})
	}
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	inside, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	t.Cleanup(func() { _ = inside.Close() })
	return outside, inside
}

func settings(t *testing.T, f *os.File) unix.Termios {
	t.Helper()
	s, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *s
}

// screenOf reads what was drawn until it holds a text.
func screenOf(t *testing.T, outside *os.File, until string) string {
	t.Helper()
	var all strings.Builder
	b := make([]byte, 4096)
	for !strings.Contains(all.String(), until) {
		n, err := outside.Read(b)
		if err != nil {
			t.Fatalf("%v after %q", err, all.String())
		}
		all.Write(b[:n])
	}
	return all.String()
}

// TestTerminal draws, takes keys as they are pressed, and gives everything back, also when what runs in between panics.
func TestTerminal(t *testing.T) {
	outside, inside := openPTY(t, 50, 12)
	before := settings(t, inside)
	term, err := openTerminal(inside, inside, style{})
	if err != nil {
		t.Fatal(err)
	}
	if s := settings(t, inside); s.Lflag&(unix.ECHO|unix.ICANON|unix.ISIG) != 0 {
		t.Error("the terminal still echoes, waits for lines or makes signals of keys")
	}
	if _, err := outside.Write([]byte{'k', keyInterrupt}); err != nil {
		t.Fatal(err)
	}
	if a, b := <-term.keys(), <-term.keys(); a != 'k' || b != keyInterrupt {
		t.Errorf("keys %q %q", a, b)
	}
	term.show(testPicture())
	first := screenOf(t, outside, "\x1b[J")
	if strings.Count(first, "\r\n") != 11 || !strings.Contains(first, "\x1b[?25l") || !strings.Contains(first, "k kill") {
		t.Errorf("first picture %q", first)
	}
	term.show(testPicture())
	if second := screenOf(t, outside, "\x1b[J"); !strings.HasPrefix(second, "\r\x1b[11A") {
		t.Errorf("second picture %q", second)
	}
	func() {
		defer func() { _ = recover() }()
		defer term.close()
		panic("in the middle")
	}()
	if rest := screenOf(t, outside, "\x1b[?25h"); strings.Contains(rest, "wasmill demo") {
		t.Errorf("left with %q", rest)
	}
	if settings(t, inside) != before {
		t.Error("the terminal is not as it was")
	}
	term.close()
}

// TestKeys runs a demo on a terminal whose engines do nothing, kills them by keys, and stops it.
func TestKeys(t *testing.T) {
	outside, inside := openPTY(t, 120, 40)
	before := settings(t, inside)
	e := testEnv(nil, "engine")
	e.In, e.Out = inside, inside
	c := testConfig(t)
	ended := make(chan error, 1)
	go func() {
		_, err := Run(t.Context(), c, e)
		ended <- err
	}()
	press := func(key byte, until string) {
		if _, err := outside.Write([]byte{key}); err != nil {
			t.Error(err)
		}
		screenOf(t, outside, until)
	}
	screenOf(t, outside, "pid ")
	press('x', "running")
	press('2', "kills 1   first output after kill -9")
	press('k', "4 in all")
	if err := outside.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Log(err) // not every kernel can; go test's own timeout holds
	}
	press(keyInterrupt, "\x1b[?25h")
	if err := <-ended; code(err) != CodeStopped {
		t.Errorf("ended with %v", err)
	}
	if settings(t, inside) != before {
		t.Error("the terminal is not as it was")
	}
}
