package main

const pathsSynopsis = ""

func runPaths(args []string) int {
	fs := flags("paths", pathsSynopsis, "Not built yet.")
	if status, ok := parse(fs, args); !ok {
		return status
	}
	return complain("paths", errNotBuilt)
}
