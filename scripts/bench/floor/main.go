// Floor is a Go program that does nothing: no plugin written in Go starts and ends
// faster.
package main

func main() {}
