// Package vm holds the tests that need what the machine's own kernel may lack: NICs
// with SR-IOV, Soft-RoCE, ipvlan, VRFs. They run as root inside a virtual machine with
// a Debian kernel and emulated igb NICs, which scripts/vm makes and boots; nothing
// they do reaches the machine that boots it. They have a build tag of their own:
// `make test-vm` builds and runs them.
package vm
