// Package spell finds the word that was probably meant, for messages about
// names nobody knows.
package spell

import "strings"

// Nearest returns the known word closest to word, or "" when none is close:
// more than two edits away, or more than a third of the word. Case differences
// alone are always close. Of equally close words the first counts.
func Nearest(word string, known []string) string {
	best, bestDist := "", min(2, len(word)/3)+1
	if len(word) > 64 { // no name is; keeps hostile input cheap
		return ""
	}
	for _, k := range known {
		if strings.EqualFold(k, word) {
			return k
		}
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < bestDist {
			best, bestDist = k, d
		}
	}
	return best
}

// distance counts inserted, dropped, changed and swapped neighbouring bytes
// (optimal string alignment).
func distance(a, b string) int {
	var before []int
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
