// Package install puts a program into a node's folder of CNI plugins and takes it out
// again, while the runtime starts plugins from there all the time: at every moment the
// name is either the whole old program or the whole new one, whatever is killed or
// fails. It keeps nothing else on the node.
package install
