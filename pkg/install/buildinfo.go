package install

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// The linker's record of what a program was made from (cmd/link, internal/ld/data.go):
// these bytes, a flag that says that two strings follow, each with its length before
// it, at 32 bytes from the start: Go's version, and between two marks of 16 bytes lines
// of which the first names the package. debug/buildinfo reads more kinds of files; here
// it would cost every ADD the initialisation of what unpacks debugging information.
const (
	infoMagic   = "\xff Go buildinf:"
	infoInline  = 1 << 1
	infoFlags   = 15
	infoStrings = 32
	infoMark    = 16
)

// mainPackage returns the import path of the package that a Go program was made from,
// or "" for anything else.
func mainPackage(program []byte) string {
	if !bytes.HasPrefix(program, []byte("\x7fELF")) {
		return ""
	}
	// The magic can be elsewhere as well: it is in this program's constants.
	for rest := program; ; rest = rest[len(infoMagic):] {
		at := bytes.Index(rest, []byte(infoMagic))
		if at < 0 {
			return ""
		}
		rest = rest[at:]
		if len(rest) < infoStrings || rest[infoFlags]&infoInline == 0 {
			continue
		}
		version, after := counted(rest[infoStrings:])
		info, _ := counted(after)
		if !strings.HasPrefix(version, "go") || len(info) < 2*infoMark {
			continue
		}
		first, _, _ := strings.Cut(info[infoMark:], "\n")
		if path, is := strings.CutPrefix(first, "path\t"); is {
			return path
		}
	}
}

// counted takes a string with its length before it.
func counted(b []byte) (s string, rest []byte) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return "", nil
	}
	return string(b[size : size+int(n)]), b[size+int(n):]
}
