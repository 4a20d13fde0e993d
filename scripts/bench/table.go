package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// series are the measurements of one thing.
type series []cost

// at is the p-th part of the sorted values that pick takes.
func (s series) at(p float64, pick func(cost) float64) float64 {
	values := make([]float64, len(s))
	for i, c := range s {
		values[i] = pick(c)
	}
	slices.Sort(values)
	return values[int(p*float64(len(values)-1)+0.5)]
}

func wall(c cost) float64 { return ms(c.wall) }
func cpu(c cost) float64  { return ms(c.cpu) }
func rss(c cost) float64  { return float64(c.rss) }

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (s series) median(pick func(cost) float64) float64 { return s.at(0.5, pick) }

// spread prints a median with the range that most values are in.
func (s series) spread(pick func(cost) float64) string {
	if len(s) == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", s.median(pick), s.at(0.1, pick), s.at(0.9, pick))
}

func (s series) kib() string {
	if len(s) == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f", s.median(rss))
}

// ratio prints how a median compares with another.
func ratio(a, b float64) string {
	if b == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", a/b)
}

// table is printed as Markdown, with columns aligned for a terminal too.
type table struct {
	head []string
	rows [][]string
}

func newTable(head ...string) *table { return &table{head: head} }

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) print(title string) {
	fmt.Printf("\n### %s\n\n", title)
	widths := make([]int, len(t.head))
	all := append([][]string{t.head}, t.rows...)
	for _, row := range all {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for n, row := range all {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString("| " + cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)) + " ")
		}
		fmt.Println(line.String() + "|")
		if n == 0 {
			fmt.Print("|")
			for _, w := range widths {
				fmt.Print(strings.Repeat("-", w+2) + "|")
			}
			fmt.Println()
		}
	}
}
