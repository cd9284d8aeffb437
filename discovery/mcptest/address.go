package mcptest

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// FreeAddress returns an address of this machine, such as 127.0.0.1:40123, that refuses
// connections until somebody listens on it by name. Nobody is given it by chance before
// the end of the test, as the port of a listener that was closed can be at any moment.
func FreeAddress(t testing.TB) string {
	t.Helper()
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	unix.CloseOnExec(socket)
	t.Cleanup(func() { _ = unix.Close(socket) })
	// With this on both, as listeners in Go have it, another socket may listen on the
	// address of one that does not.
	if err := unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(socket, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	bound, err := unix.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", bound.(*unix.SockaddrInet4).Port)
}
