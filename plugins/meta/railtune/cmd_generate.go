package main

const generateSynopsis = ""

func runGenerate(args []string) int {
	fs := flags("generate", generateSynopsis, "Not built yet.")
	if status, ok := parse(fs, args); !ok {
		return status
	}
	return complain("generate", errNotBuilt)
}
