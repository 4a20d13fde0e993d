package main

import "errors"

const doctorSynopsis = ""

func runDoctor(args []string) int {
	fs := flags("doctor", doctorSynopsis, "Not built yet.")
	if status, ok := parse(fs, args); !ok {
		return status
	}
	return complain("doctor", errNotBuilt)
}

// placeholder of commands under construction
var errNotBuilt = errors.New("not built yet")
