package main

// Set by the linker: -X main.buildVersion=… -X main.buildCommit=… -X main.buildDate=…
var (
	buildVersion = "devel"
	buildCommit  = "unknown"
	buildDate    = "unknown"
)

// about is what "railtune version" and the CNI about text say.
func about() string {
	return "CNI plugin railtune " + buildVersion + " (commit " + buildCommit + ", " + buildDate + ")"
}
