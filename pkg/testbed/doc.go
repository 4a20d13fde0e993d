// Package testbed builds what railtune is tried on: pods with many rails, the
// nodes that hold the rails' parents, and the fabric between them, all in
// network namespaces of one process and none of it visible outside.
//
// A process enters its sandbox first (Main in a TestMain, Enter in a program):
// a mount and a network namespace in which /run/netns and the folders that CNI
// keeps state in are private and the "host" has only a loopback. What a run makes
// lives there, so it is gone when the process is, however that ends: success,
// failure, panic, SIGINT or SIGKILL.
//
// Inside it, NewFabric makes pods and their rails; a Pod attaches rails through
// the real cnitool and plugins; Snapshot and Diff show what a plugin changed in
// a namespace; Measure says which rail-to-rail paths carry packets.
package testbed
