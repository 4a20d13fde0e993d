// Package clients holds railtune's tests with the programs that call it: the real
// cnitool and the real Multus, with the real plugins around it in the chain. They
// need root and binaries that only `make test-clients` builds, so they have a build
// tag of their own.
package clients
