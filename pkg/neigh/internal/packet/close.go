package packet

import "golang.org/x/sys/unix"

// closeLater closes a packet socket in the kernel's background.
//
// The last close of a packet socket waits for an RCU grace period
// (packet_release calls synchronize_net): measured 8 to 24 ms, uninterruptible,
// and a process that leaves it open pays the same at exit. Runtimes call one
// ADD after another, so a pod with sixteen rails would spend a quarter of a
// second there. So the descriptor is handed to the kernel's own collector: it
// is sent, with the receiving end's descriptor, over a Unix socket pair that is
// then closed. The queue now refers to itself and nobody else to it, which is
// what the garbage collector for descriptors in flight finds and frees in a
// worker thread (net/unix/garbage.c). That costs 0.02 to 0.2 ms here; the
// socket is gone a few milliseconds later. Its filter still stands until then,
// and its buffer is bounded.
//
// Where any step fails (a sandbox kernel, a full table of descriptors in
// flight) the socket is closed the plain way.
func closeLater(fd int) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return unix.Close(fd)
	}
	// Not received by anyone: if this fails, the close below is the last one.
	_ = unix.Sendmsg(pair[0], []byte{0}, unix.UnixRights(fd, pair[1]), nil, unix.MSG_DONTWAIT)
	err = unix.Close(fd)
	_ = unix.Close(pair[0])
	_ = unix.Close(pair[1])
	return err
}
