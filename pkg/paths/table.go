package paths

import (
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
)

// width is what the table and its sentences keep to.
const width = 100

// examples bounds how many sentences stand for all paths of a code.
const examples = 2

const legend = `two marks for each path: bound to the rail's device, then to its address
  + all replies came in on the rail   ~ some did   x they came in on another interface
  - nothing came back                 ! not sent, or said to be unreachable
  > leaves by another interface       . cannot be tried
`

// Table prints the report for people.
func (r *Report) Table(w io.Writer) error {
	var b strings.Builder
	for _, pod := range r.pods() {
		r.matrix(&b, pod)
	}
	b.WriteString(legend)
	r.findings(&b)
	r.hops(&b)
	switch n := r.Failing(); n {
	case 0:
		fmt.Fprintf(&b, "\n%d paths, all work\n", len(r.Pairs))
	default:
		fmt.Fprintf(&b, "\n%d paths, %d do not work\n", len(r.Pairs), n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// pods are the peers' names in their order.
func (r *Report) pods() (names []string) {
	for _, p := range r.Pairs {
		if !slices.Contains(names, p.Pod) {
			names = append(names, p.Pod)
		}
	}
	return names
}

// matrix prints the paths to one peer, in as many blocks as fit.
func (r *Report) matrix(b *strings.Builder, pod string) {
	var columns []Peer
	for _, p := range r.Pairs {
		if p.Pod == pod && !slices.Contains(columns, p.Peer) {
			columns = append(columns, p.Peer)
		}
	}
	first := len("from")
	for _, rail := range r.Rails {
		first = max(first, len(rail.Name))
	}
	labels, prefix := labelled(columns, width-first)
	cell := 2
	for _, l := range labels {
		cell = max(cell, len(l))
	}
	to := "the peer"
	if pod != "" {
		to = pod
	}
	if prefix != "" {
		to += ", rails " + prefix
	}
	fmt.Fprintf(b, "to %s\n", to)
	for block := range slices.Chunk(indices(len(columns)), max(1, (width-first)/(cell+1))) {
		fmt.Fprintf(b, "%-*s", first, "from")
		for _, i := range block {
			fmt.Fprintf(b, " %-*s", cell, labels[i])
		}
		trim(b)
		for _, rail := range r.Rails {
			fmt.Fprintf(b, "%-*s", first, rail.Name)
			for _, i := range block {
				fmt.Fprintf(b, " %-*s", cell, r.cell(rail.Name, columns[i]))
			}
			trim(b)
		}
		b.WriteString("\n")
	}
}

func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// trim ends a line.
func trim(b *strings.Builder) {
	text := strings.TrimRight(b.String(), " ")
	b.Reset()
	b.WriteString(text + "\n")
}

// labelled names the columns: by the rail and, where they do not fit into room so, by
// what follows the part that all have in common, which is the prefix.
func labelled(columns []Peer, room int) (labels []string, prefix string) {
	seen := map[string]bool{}
	total := 0
	for _, c := range columns {
		l := c.Rail
		if seen[l] {
			l += "/" + c.Addr.String() // a rail with several addresses
		}
		seen[c.Rail] = true
		labels = append(labels, l)
		total = max(total, len(l))
	}
	if (total+1)*len(columns) <= room {
		return labels, ""
	}
	prefix = labels[0]
	for _, l := range labels {
		for !strings.HasPrefix(l, prefix) || len(prefix) == len(l) {
			prefix = prefix[:len(prefix)-1]
		}
	}
	prefix = strings.TrimRight(prefix, "0123456789")
	for i := range labels {
		labels[i] = labels[i][len(prefix):]
	}
	if prefix != "" {
		prefix += "…"
	}
	return labels, prefix
}

// cell is the two marks of a path, or blank where there is none.
func (r *Report) cell(from string, to Peer) string {
	for _, p := range r.Pairs {
		if p.From == from && p.Peer == to {
			return p.Device.mark() + p.Source.mark()
		}
	}
	return ""
}

func (o Outcome) mark() string {
	switch {
	case o.Sent == 0:
		return "."
	case o.good():
		return "+"
	case o.Leaves != "":
		return ">"
	case o.Elsewhere != "":
		return "x"
	case o.Back > 0:
		return "~"
	case o.Error != "" || o.Says != "":
		return "!"
	}
	return "-"
}

// findings prints what is the matter, by code: which paths, and sentences about some.
func (r *Report) findings(b *strings.Builder) {
	var codes []Code
	for _, p := range r.Pairs {
		if p.Code != OK && !slices.Contains(codes, p.Code) {
			codes = append(codes, p.Code)
		}
	}
	for _, code := range codes {
		var of []Pair
		for _, p := range r.Pairs {
			if p.Code == code {
				of = append(of, p)
			}
		}
		b.WriteString("\n")
		wrap(b, 0, fmt.Sprintf("%s: %s", code, which(of)))
		var said []string
		for _, p := range of {
			if slices.Contains(said, p.Why) {
				continue
			}
			if len(said) == examples {
				wrap(b, 2, "and others like these (-o json has each)")
				break
			}
			said = append(said, p.Why)
			wrap(b, 2, fmt.Sprintf("%s → %s: %s", p.From, p.name(), p.Why))
			if len(p.Hops) > 0 {
				wrap(b, 4, "hops: "+p.path())
			}
		}
	}
}

// name is the peer's rail with its pod, where that has a name.
func (p Peer) name() string {
	return strings.TrimSpace(p.Pod+" "+p.Rail) + " " + p.Addr.String()
}

// which lists paths by the rail they start from.
func which(of []Pair) string {
	var parts []string
	for i := 0; i < len(of); {
		from, to := of[i].From, []string{}
		for ; i < len(of) && of[i].From == from; i++ {
			to = append(to, strings.TrimSpace(of[i].Pod+" "+of[i].Rail))
		}
		if len(to) > 4 {
			to = append(to[:3], fmt.Sprintf("%d more", len(to)-3))
		}
		parts = append(parts, from+" → "+strings.Join(to, ", "))
	}
	if len(parts) > 5 {
		parts = append(parts[:4], fmt.Sprintf("and from %d more rails", len(parts)-4))
	}
	plural := "paths"
	if len(of) == 1 {
		plural = "path"
	}
	return fmt.Sprintf("%d %s: %s", len(of), plural, strings.Join(parts, "; "))
}

// path is the hops in words, * for a silent one.
func (p Pair) path() string {
	var names []string
	for _, h := range p.Hops {
		if h == (netip.Addr{}) {
			names = append(names, "*")
			continue
		}
		names = append(names, h.String())
	}
	return strings.Join(names, " → ")
}

// hops prints the good paths that were followed, one for each number of hops.
func (r *Report) hops(b *strings.Builder) {
	byCount := map[int][]Pair{}
	for _, p := range r.Pairs {
		if p.Code == OK && len(p.Hops) > 0 {
			byCount[len(p.Hops)] = append(byCount[len(p.Hops)], p)
		}
	}
	for n := range MaxHopsShown {
		of := byCount[n]
		if len(of) == 0 {
			continue
		}
		text := fmt.Sprintf("%s → %s by %s", of[0].From, of[0].name(), of[0].path())
		if len(of) > 1 {
			text += fmt.Sprintf("; from other rails with as many hops: %d", len(of)-1)
		}
		b.WriteString("\n")
		wrap(b, 0, text)
	}
}

// MaxHopsShown is more than a path through a compute network has.
const MaxHopsShown = 64

// wrap writes text in lines that keep to the width, later ones two further in.
func wrap(b *strings.Builder, indent int, text string) {
	line := strings.Repeat(" ", indent)
	at := 0
	for word := range strings.FieldsSeq(text) {
		n := len([]rune(word))
		switch {
		case at == 0:
			b.WriteString(line)
			at = indent
		case at+1+n > width:
			b.WriteString("\n" + line + "  ")
			at = indent + 2
		default:
			b.WriteString(" ")
			at++
		}
		b.WriteString(word)
		at += n
	}
	b.WriteString("\n")
}
