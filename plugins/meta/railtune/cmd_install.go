package main

const (
	installSynopsis   = ""
	uninstallSynopsis = ""
)

func runInstall(args []string) int {
	fs := flags("install", installSynopsis, "Not built yet.")
	if status, ok := parse(fs, args); !ok {
		return status
	}
	return complain("install", errNotBuilt)
}

func runUninstall(args []string) int {
	fs := flags("uninstall", uninstallSynopsis, "Not built yet.")
	if status, ok := parse(fs, args); !ok {
		return status
	}
	return complain("uninstall", errNotBuilt)
}
