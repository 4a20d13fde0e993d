// Package docs runs what the documentation says: each fenced block of each page.
//
// The language of a block says what is done with it:
//
//	console            lines after "$ " are commands; the others are what they print,
//	                   with … for what changes, a line of … alone for any lines
//	sh                 commands, which end with 0; what they print is not looked at
//	json, jsonc, yaml  a network, railtune's object of it, or a Kubernetes object:
//	                   railtune's configuration in it is read as railtune does
//	text               nothing to run: a drawing, an error's text
//
// Any other language, and none, is a mistake. Comments before a block say more:
//
//	<!-- world: pods rails=16 -->  where the commands from here on run (see World)
//	<!-- exit: 1 -->               how the commands of the next block end
//	<!-- file: rails.yaml -->      the next block is also a file that commands use
//	<!-- from: go.mod -->          the next block is a part of this file of the repository
//	<!-- run: sleep 1 -->          done before the next block, and of no use to readers
//
// A "make" command, or a script of this repository, counts as run where .ci/run runs it.
package docs
