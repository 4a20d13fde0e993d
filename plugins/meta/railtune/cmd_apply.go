package main

const applySynopsis = ""

func runApply(args []string) int {
	fs := flags("apply", applySynopsis, "Not built yet.")
	if status, ok := parse(fs, args); !ok {
		return status
	}
	return complain("apply", errNotBuilt)
}
