// Package render shows a report: as tables of at most a hundred columns, or as JSON.
package render

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/railtune/railtune/pkg/doctor"
	"github.com/railtune/railtune/pkg/doctor/facts"
)

// Width is how wide a line may be.
const Width = 100

// Table writes the report for people: the rails, their settings and ways, the rules, and
// last, where the eye is, the findings. brief leaves out all but rails and findings.
func Table(w io.Writer, r *doctor.Report, brief bool) {
	n := r.Namespace
	fmt.Fprintf(w, "namespace %s\n", n.Path)
	rails(w, n)
	if !brief {
		addresses(w, n)
		settings(w, n)
		ways(w, n)
		rules(w, n)
		neighbours(w, n)
	}
	notes(w, r)
	findings(w, r)
}

func rails(w io.Writer, n *facts.Namespace) {
	if len(n.Rails) == 0 {
		return
	}
	t := []string{"RAIL", "DRIVER", "PARENT", "MAC", "MTU", "LINK", "RDMA", "BECAUSE"}
	rows := [][]string{t}
	for i := range n.Rails {
		r := &n.Rails[i]
		device := "-"
		if r.RDMA != nil {
			device = r.RDMA.Device
		}
		rows = append(rows, []string{r.Name, or(r.Driver, r.Kind), or(r.Parent), or(r.MAC), fmt.Sprint(r.MTU), linkText(r), device, r.Because})
	}
	fmt.Fprintln(w)
	grid(w, rows)
}

func linkText(r *facts.Rail) string {
	switch {
	case !r.Up:
		return "down"
	case !r.Carrier:
		return "no carrier"
	}
	return "up"
}

func or(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return "-"
}

func addresses(w io.Writer, n *facts.Namespace) {
	rows := [][]string{{"RAIL", "ADDRESS", "STATE", "FROM", "ROCE V2 GIDS (PORT/INDEX)"}}
	for i := range n.Rails {
		r := &n.Rails[i]
		for _, a := range r.Addresses {
			if a.Address.Addr().IsLinkLocalUnicast() && a.State == "usable" && len(r.Addresses) > 1 && r.RDMA == nil {
				continue // every interface has one
			}
			from := "configured"
			switch {
			case a.FromRA:
				from = "router advertisement"
			case a.Address.Addr().IsLinkLocalUnicast():
				from = "kernel"
			}
			rows = append(rows, []string{r.Name, a.Address.String(), a.State, from, gidText(r, a)})
		}
	}
	section(w, "addresses", rows)
}

func gidText(r *facts.Rail, a facts.Address) string {
	if r.RDMA == nil {
		return "-"
	}
	var list []string
	for _, g := range r.RDMA.GIDs {
		if g.Addr == a.Address.Addr() {
			list = append(list, fmt.Sprintf("%d/%d", g.Port, g.Index))
		}
	}
	return or(strings.Join(list, " "), "none")
}

// settings shows a setting once where all rails agree, else once for each value.
func settings(w io.Writer, n *facts.Namespace) {
	rows := [][]string{{"SETTING", "FILE", "ALL", "EFFECTIVE", "VERDICT", "RAILS"}}
	var order []string
	groups := map[string][]string{}
	for i := range n.Rails {
		r := &n.Rails[i]
		for _, s := range r.Settings {
			row := strings.Join([]string{
				string(s.Key.Family) + " " + s.Key.Leaf, s.File, or(s.All), s.Effective, or(s.Verdict),
			}, "\x00")
			if groups[row] == nil {
				order = append(order, row)
			}
			groups[row] = append(groups[row], r.Name)
		}
	}
	slices.SortStableFunc(order, func(a, b string) int { return rank(n, a) - rank(n, b) })
	for _, row := range order {
		rows = append(rows, append(strings.Split(row, "\x00"), names(groups[row], len(n.Rails))))
	}
	section(w, "settings", rows)
}

// rank keeps the values of one setting together, in the order of the first rail's.
func rank(n *facts.Namespace, row string) int {
	name, _, _ := strings.Cut(row, "\x00")
	return slices.IndexFunc(n.Rails[0].Settings, func(s facts.Setting) bool { return string(s.Key.Family)+" "+s.Key.Leaf == name })
}

func names(rails []string, all int) string {
	if len(rails) == all {
		return "all"
	}
	if len(rails) > 6 {
		return strings.Join(rails[:5], " ") + fmt.Sprintf(" and %d more", len(rails)-5)
	}
	return strings.Join(rails, " ")
}

// ways shows by where packets leave: a line where plain and bound sockets agree.
func ways(w io.Writer, n *facts.Namespace) {
	rows := [][]string{{"RAIL", "FROM", "TO", "TABLE", "LEAVES BY", "BOUND TO THE RAIL"}}
	for i := range n.Rails {
		r := &n.Rails[i]
		siblings := 0
		for k := 0; k+1 < len(r.Lookups); k += 2 {
			plain, bound := r.Lookups[k], r.Lookups[k+1]
			if plain.Purpose == facts.ToSibling {
				// Sixteen rails have fifteen siblings each: the first stands for those alike.
				if siblings++; siblings > 1 && r.Lookups[k].Dev == r.Lookups[k-2].Dev && bound.Dev == r.Lookups[k-1].Dev {
					continue
				}
			}
			rows = append(rows, []string{r.Name, plain.From.String(), wayTo(plain), tableText(plain), leaves(plain), leaves(bound)})
		}
	}
	section(w, "ways", rows)
}

func wayTo(l facts.Lookup) string {
	if l.Prefix.IsValid() {
		return string(l.Purpose) + " " + l.Prefix.String()
	}
	if l.Purpose == facts.ToAnywhere {
		return string(l.Purpose)
	}
	return string(l.Purpose) + " " + l.To.String()
}

func tableText(l facts.Lookup) string {
	switch l.Table {
	case 0:
		return "-"
	case 254:
		return "main"
	}
	return fmt.Sprint(l.Table)
}

func leaves(l facts.Lookup) string {
	switch {
	case l.Error != "":
		return "no way"
	case l.GW.IsValid():
		return l.Dev + " via " + l.GW.String()
	}
	return l.Dev
}

// maxRows bounds lists that can have any length; a healthy pod of sixteen rails has less.
const maxRows = 100

func rules(w io.Writer, n *facts.Namespace) {
	ours := 0
	rows := [][]string{{"RULE OF OTHERS", "CONDITIONS"}}
	for _, r := range n.Rules {
		conditions := "-"
		if r.More {
			conditions = "and more"
		}
		if r.Ours {
			ours++ // ADD's own are as they should be, or there is a finding
			continue
		}
		rows = append(rows, []string{strings.TrimPrefix(r.Text, "ip "), conditions})
	}
	fmt.Fprintf(w, "\nrules: %d in all, %d of railtune's, %d of others that a rail's packets can meet\n", n.RuleCount, ours, len(rows)-1)
	if len(rows) > 1 {
		grid(w, bounded(rows))
	}
	private := 0
	for _, r := range n.Routes {
		if r.Ours {
			private++
		}
	}
	fmt.Fprintf(w, "routes: %d of railtune's\n", private)
	for _, t := range n.NeighbourTables {
		fmt.Fprintf(w, "%s neighbour table of the host: %d entries, at most %d\n", t.Name, t.Entries, t.Limit)
	}
	if n.Firewall {
		fmt.Fprintf(w, "iptables: %s\n", chainText(n))
	}
}

// chainText names the chains that were read, by tool and table.
func chainText(n *facts.Namespace) string {
	if len(n.Chains) == 0 {
		return "no table filter or raw here"
	}
	var places []string
	chains, rules := 0, 0
	for _, c := range n.Chains {
		chains, rules = chains+1, rules+len(c.Rules)
		if place := c.Tool + " " + c.Table; !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	return fmt.Sprintf("%d chains, %d rules in %s", chains, rules, strings.Join(places, ", "))
}

func neighbours(w io.Writer, n *facts.Namespace) {
	rows := [][]string{{"RAIL", "NEIGHBOUR", "MAC", "STATE"}}
	for i := range n.Rails {
		r := &n.Rails[i]
		for _, e := range r.Entries {
			rows = append(rows, []string{r.Name, e.Address.String(), or(e.MAC), e.State})
		}
		for _, q := range r.Proof {
			rows = append(rows, []string{r.Name, q.Address.String(), or(strings.Join(q.MACs, " ")), fmt.Sprintf("asked: %s (%s)", q.Verdict, q.Role)})
		}
	}
	section(w, "neighbours", rows)
}

func section(w io.Writer, title string, rows [][]string) {
	if len(rows) < 2 {
		return
	}
	fmt.Fprintf(w, "\n%s\n", title)
	grid(w, bounded(rows))
}

// bounded cuts a list and says so.
func bounded(rows [][]string) [][]string {
	more := len(rows) - 1 - maxRows
	if more <= 0 {
		return rows
	}
	last := make([]string, len(rows[0]))
	last[0] = fmt.Sprintf("… and %d more (-o json has all)", more)
	return append(rows[:maxRows+1:maxRows+1], last)
}
