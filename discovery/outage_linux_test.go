package discovery_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mcpledger/discovery/mcptest"
	"mcpledger/events"
	"mcpledger/projections"
)

// envNetwork is set in the process that has a network of its own.
const envNetwork = "DISCOVERY_TEST_NETWORK"

// inNetworkOfItsOwn runs the test once more, in a process with a network of its own,
// and reports whether this is that process. It skips the test where the system lets us
// have none.
func inNetworkOfItsOwn(t *testing.T) bool {
	t.Helper()
	if os.Getenv(envNetwork) != "" {
		return true
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-test.run=^"+t.Name()+"$", "-test.v", "-test.count=1", "-test.timeout=30m")
	cmd.Env = append(os.Environ(), envNetwork+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Skipf("a network of its own needs root on Linux: %v", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("in a network of its own: %v\n%s", err, said.String())
	}
	return false
}

// network is the only interface of a network of our own.
type network struct{ t *testing.T }

// set makes one change to the interface.
func (n network) set(request uint, change func(*unix.Ifreq) error) {
	n.t.Helper()
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		n.t.Fatal(err)
	}
	defer unix.Close(socket)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		n.t.Fatal(err)
	}
	if err := change(lo); err != nil {
		n.t.Fatal(err)
	}
	if err := unix.IoctlIfreq(socket, request, lo); err != nil {
		n.t.Fatal(err)
	}
}

func (n network) address(a [4]byte) {
	n.set(unix.SIOCSIFADDR, func(lo *unix.Ifreq) error { return lo.SetInet4Addr(a[:]) })
}

func (n network) flags(f uint16) {
	n.set(unix.SIOCSIFFLAGS, func(lo *unix.Ifreq) error { lo.SetUint16(f); return nil })
}

// up lets everything through.
func (n network) up() {
	n.address([4]byte{127, 0, 0, 1})
	n.flags(unix.IFF_UP)
}

// noRoute has connections refused by our own machine.
func (n network) noRoute() { n.address([4]byte{}) }

// silent swallows whatever is sent.
func (n network) silent() { n.flags(0) }

func TestANetworkThatIsGoneIsCountedAgainstNobody(t *testing.T) {
	if !inNetworkOfItsOwn(t) {
		return
	}
	for _, gone := range []struct {
		how    string
		cut    func(network)
		class  string
		limits time.Duration // what is waited for in vain, and so takes no time here
	}{
		{"there is no route", network.noRoute, "network", 0},
		{"nothing comes back", network.silent, "timeout", 15 * time.Second},
	} {
		t.Run(gone.how, func(t *testing.T) {
			lo := network{t}
			lo.up()
			w := newWorld(t)
			w.clock = newTestClock()
			names := w.remotes(12)
			r := &life{running: w.start()}
			r.pass(time.Hour)
			for _, name := range names {
				if v := r.server(name); v.State != projections.StateReady {
					t.Fatalf("with a network %s is %s: %s", name, v.State, v.Reason)
				}
			}

			// Ten failures that are alike, over an hour, would make a skip of any one. A
			// service that is off for longer than an outage is thought to last, and starts
			// into it again, takes it for what it is, too.
			usual := w.clock.setShort(max(gone.limits, time.Second))
			gone.cut(lo)
			r.pass(40 * time.Minute)
			r.stop()
			w.clock.advance(20 * time.Minute)
			r = &life{running: w.start()}
			r.pass(40 * time.Minute)
			for _, name := range names {
				r.wantExcused(name, gone.class)
			}

			back := w.now()
			lo.up()
			w.clock.setShort(usual)
			r.pass(6 * time.Minute) // the longest wait after a failed check, and its spread
			for _, name := range names {
				v := r.server(name)
				if v.State != projections.StateReady || v.VerifiedAt.Before(back) {
					t.Errorf("with the network back %s is %s, verified %s after: %s", name, v.State, v.VerifiedAt.Sub(back), v.Reason)
				}
				if got := len(r.recorded(name, events.TypeDiscoverySkipped)); got != 0 {
					t.Errorf("%s was skipped %d times", name, got)
				}
			}
		})
	}
}

// remotes configures healthy servers that are reached over the network.
func (w *world) remotes(n int) []events.ServerName {
	var names []events.ServerName
	for i := range n {
		name := fmt.Sprintf("remote-%02d", i)
		w.entries[name] = map[string]any{"url": mcptest.NewHTTP(w.t, mcptest.HTTP{}).URL}
		names = append(names, events.ServerName(name))
	}
	return names
}

// wantExcused checks that a server which cannot be reached is offered still, and that
// each of its failures is laid to an outage.
func (r *life) wantExcused(name events.ServerName, class string) {
	r.w.t.Helper()
	v := r.server(name)
	if v.State != projections.StateUnreachable || v.Needs != projections.NeedsWait || v.Streak != nil || v.Skip != nil {
		r.w.t.Errorf("%s is %s, needs %s, streak %+v, skip %+v: %s", name, v.State, v.Needs, v.Streak, v.Skip, v.Reason)
	}
	if v.Cause == nil || string(v.Cause.Class) != class {
		r.w.t.Errorf("%s fails by %+v, want class %s", name, v.Cause, class)
	}
	excused := 0
	for _, l := range v.Chain {
		if l.Type == events.TypeDiscoveryFailed && l.Role == projections.RoleNotCounted && strings.Contains(l.Note, "outage") {
			excused++
		}
	}
	if excused < 10 || excused != len(v.Chain) {
		r.w.t.Errorf("%s: %d of %d links are laid to an outage, want all, and 10 at least: %+v", name, excused, len(v.Chain), v.Chain)
	}
}
