// Package cluster holds railtune's tests with what surrounds it on a Kubernetes
// node: a real API server, Multus with network attachment definitions, the SR-IOV
// Network Operator's renderer, whereabouts, and containerd with real pod sandboxes.
// They need root, Debian's etcd and containerd, and binaries that only `make
// test-cluster` builds, so they have a build tag of their own.
package cluster
