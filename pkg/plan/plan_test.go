package plan_test

import (
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/config"
	"github.com/railtune/railtune/pkg/hwaddr"
	"github.com/railtune/railtune/pkg/netstate"
	"github.com/railtune/railtune/pkg/plan"
	"github.com/railtune/railtune/pkg/prevresult"
)

var update = flag.Bool("update", false, "write the plans that come out into testdata/plans")

// TestGolden computes the plan of every file in testdata/plans and compares it with
// the one in the file. A file is a txtar archive:
//
//	comment         what the situation is; a line "rails N" repeats the rest for
//	                {k} = 0 … N-1 and {n} = {k}+1
//	conf.json       railtune's own entry of the chain
//	prevresult.json what the plugins before it returned
//	state           the namespace, a line per link (see parseState); first the rail
//	plan            the plan as it prints, or "error CODE: text"
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("../../testdata/plans/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no plans found: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := plansOf(t, ar)
			if *update {
				setSection(ar, "plan", got)
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want := section(t, ar, "plan"); got != want {
				t.Errorf("plan is not as in %s\n--- want\n%s--- got\n%s", file, want, got)
			}
		})
	}
}

func plansOf(t *testing.T, ar *txtar.Archive) string {
	t.Helper()
	rails := 1
	for line := range strings.Lines(string(ar.Comment)) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "rails "); ok {
			rails, _ = strconv.Atoi(n)
		}
	}
	var out strings.Builder
	for k := range rails {
		fill := strings.NewReplacer("{k}", strconv.Itoa(k), "{n}", strconv.Itoa(k+1))
		in := func(name string) string { return fill.Replace(section(t, ar, name)) }
		if rails > 1 {
			fmt.Fprintf(&out, "# rail %d\n", k)
		}
		out.WriteString(planText(t, in("conf.json"), in("prevresult.json"), in("state")))
	}
	return out.String()
}

func planText(t *testing.T, conf, prev, state string) string {
	t.Helper()
	cfg, err := config.Parse([]byte(conf))
	if err != nil {
		return errorText(t, err)
	}
	res, err := prevresult.Parse([]byte(prev), cfg.CNIVersion, nil)
	if err != nil {
		return errorText(t, err)
	}
	s := parseState(t, state)
	p, err := plan.Build(plan.Input{Config: cfg, IPs: res.Addresses(s.Rail.Name), Routes: res.Routes, State: s})
	if err != nil {
		return errorText(t, err)
	}
	var b strings.Builder
	b.WriteString(p.String())
	for _, l := range p.Lookups {
		if !l.Bound {
			via := "directly"
			if l.GW.IsValid() {
				via = "via " + l.GW.String()
			}
			fmt.Fprintf(&b, "# proof: from %s to %s (%s) %s\n", l.From, l.To, l.Why, via)
		}
	}
	return b.String()
}

func errorText(t *testing.T, err error) string {
	t.Helper()
	var e *cnierr.Error
	if !errors.As(err, &e) {
		t.Fatalf("error without a code: %v", err)
	}
	return fmt.Sprintf("error %d: %v\n", e.Code, e)
}

func section(t *testing.T, ar *txtar.Archive, name string) string {
	t.Helper()
	for _, f := range ar.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	t.Fatalf("the archive has no section %q", name)
	return ""
}

func setSection(ar *txtar.Archive, name, data string) {
	for i := range ar.Files {
		if ar.Files[i].Name == name {
			ar.Files[i].Data = []byte(data)
		}
	}
}

// parseState reads a namespace. The first link is the rail:
//
//	net1 5 kind=ipvlan mtu=4220 10.61.0.11/16 fd5a::1/64,tentative down nocarrier noarp vrf=10 tuned default=10.61.0.1
//	namespace noipv6 ipv6-disabled forwarding6 ra-default accepts-ra
func parseState(t *testing.T, text string) *netstate.State {
	t.Helper()
	s := &netstate.State{NetNS: "/run/netns/pod", IPv6: true, IPv6Kernel: true}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		switch {
		case len(f) == 0:
		case f[0] == "namespace":
			for _, word := range f[1:] {
				parseNamespace(t, s, word)
			}
		case s.Rail.Name == "":
			s.Rail = parseLink(t, f)
		default:
			s.Others = append(s.Others, parseLink(t, f))
		}
	}
	return s
}

func parseNamespace(t *testing.T, s *netstate.State, word string) {
	t.Helper()
	switch word {
	case "noipv6":
		s.IPv6, s.IPv6Kernel = false, false
	case "no-ipv6-on-link":
		s.IPv6 = false
	case "ipv6-disabled":
		s.IPv6Disabled = true
	case "forwarding6":
		s.Forwarding6 = true
	case "ra-default":
		s.RADefault = true
	case "accepts-ra":
		s.AcceptsRA = true
	default:
		t.Fatalf("unknown word %q", word)
	}
}

func parseLink(t *testing.T, f []string) netstate.Link {
	t.Helper()
	index, err := strconv.Atoi(f[1])
	if err != nil {
		t.Fatalf("link %s: index %q", f[0], f[1])
	}
	l := netstate.Link{
		Name: f[0], Index: index, MTU: 1500, ARPHRD: 1, Up: true, Carrier: true,
		MAC: hwaddr.MAC{2, 0xa1, 0, 0, 0, byte(index)},
	}
	for _, word := range f[2:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "kind":
			l.Kind = value
		case "mtu":
			l.MTU, _ = strconv.Atoi(value)
		case "down":
			l.Up = false
		case "nocarrier":
			l.Carrier = false
		case "vrf":
			table, _ := strconv.ParseUint(value, 10, 32)
			l.VRFTable = uint32(table)
		case "noarp":
			l.NoARP = true
		case "tuned":
			l.Tuned = true
		case "default":
			l.HasDefault = true
			if value != "" {
				l.DefaultVia = append(l.DefaultVia, netip.MustParseAddr(value))
			}
		default:
			text, flags, _ := strings.Cut(word, ",")
			a := netstate.Addr{
				Tentative: strings.Contains(flags, "tentative"),
				DADFailed: strings.Contains(flags, "dadfailed"),
				FromRA:    strings.Contains(flags, "ra"),
			}
			if a.Prefix, err = netip.ParsePrefix(text); err != nil {
				t.Fatalf("link %s: %q: %v", f[0], word, err)
			}
			l.Addrs = append(l.Addrs, a)
		}
	}
	return l
}
