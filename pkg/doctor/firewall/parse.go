package firewall

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// rule is one line of iptables -S, as far as it is understood.
type rule struct {
	chain, target string
	// policy is set for a "-P CHAIN POLICY" line, which has no chain.
	policy   string
	matches  []match
	setMark  func(mark uint32) uint32
	gotoOnly bool // -g: a RETURN there ends this chain too
}

// match is one condition: yes, no, or (doubt) not known.
type match func(p Packet) verdict

type verdict int

const (
	no verdict = iota
	yes
	doubt
)

func truth(b bool) verdict {
	if b {
		return yes
	}
	return no
}

// jumps says that the target is a chain of the user's.
func (r rule) jumps() bool {
	return r.target != "" && !slices.Contains([]string{
		"ACCEPT", "DROP", "REJECT", "RETURN", "MARK", "LOG", "NFLOG", "CT", "NOTRACK",
		"CONNMARK", "TRACE", "QUEUE", "NFQUEUE", "TCPMSS", "CLASSIFY", "DSCP", "AUDIT", "CHECKSUM", "SET", "RATEEST", "TEE",
	}, r.target)
}

// parse reads a line of iptables -S. What it does not understand becomes a condition
// whose truth is in doubt.
func parse(line string) rule {
	words := split(line)
	if len(words) >= 3 && words[0] == "-P" {
		return rule{policy: words[2]}
	}
	if len(words) < 2 || words[0] != "-A" {
		return rule{}
	}
	r := rule{chain: words[1]}
	for rest := words[2:]; len(rest) > 0; {
		not := rest[0] == "!"
		if not {
			rest = rest[1:]
		}
		if len(rest) == 0 {
			break
		}
		n := r.option(rest, not)
		rest = rest[min(n, len(rest)):]
	}
	return r
}

// option reads the option at the start of rest and returns how many words it took.
func (r *rule) option(rest []string, not bool) int {
	value := ""
	if len(rest) > 1 {
		value = rest[1]
	}
	add := func(m match) { r.matches = append(r.matches, invert(m, not)) }
	switch rest[0] {
	case "-j", "-g":
		r.target, r.gotoOnly = value, rest[0] == "-g"
	case "-i":
		add(func(p Packet) verdict { return truth(!p.Out && ifaceMatches(value, p.Rail)) })
	case "-o":
		add(func(p Packet) verdict { return truth(p.Out && ifaceMatches(value, p.Rail)) })
	case "-s":
		add(func(p Packet) verdict { return inPrefix(value, p.Src) })
	case "-d":
		add(func(p Packet) verdict { return inPrefix(value, p.Dst) })
	case "-p":
		add(func(p Packet) verdict { return truth(value == "all" || value == p.Proto) })
	case "--dport", "--dports", "--ports":
		add(func(p Packet) verdict { return inPorts(value, p.Port) })
	case "--sport", "--sports":
		add(func(p Packet) verdict { return inPorts(value, sourcePort) })
	case "--icmpv6-type":
		add(func(p Packet) verdict { return truth(p.Proto == "ipv6-icmp" && icmpIs(value, p.Type)) })
	case "--ctstate", "--state":
		add(func(p Packet) verdict { return truth(slices.Contains(strings.Split(value, ","), p.State)) })
	case "--mark":
		add(func(p Packet) verdict {
			want, mask := markOf(value)
			return truth(p.mark&mask == want)
		})
	case "--set-xmark":
		bits, mask := markOf(value)
		r.setMark = func(mark uint32) uint32 { return mark&^mask ^ bits }
	case "-m":
		if !slices.Contains([]string{"comment", "tcp", "udp", "icmp", "icmp6", "ipv6-icmp", "mark", "state", "conntrack", "multiport"}, value) {
			add(func(Packet) verdict { return doubt })
		}
	case "--comment", "--reject-with", "--log-prefix", "--log-level", "--nflog-prefix", "--nflog-group", "--tcp-flags":
		if rest[0] == "--tcp-flags" {
			// A first segment has SYN alone, which is what --syn is listed as.
			add(func(Packet) verdict { return truth(len(rest) > 2 && rest[2] == "SYN") })
			return 3
		}
	default:
		add(func(Packet) verdict { return doubt })
		if strings.HasPrefix(value, "-") || value == "!" {
			return 1
		}
	}
	return 2
}

func invert(m match, not bool) match {
	if !not {
		return m
	}
	return func(p Packet) verdict {
		switch m(p) {
		case yes:
			return no
		case no:
			return yes
		}
		return doubt
	}
}

func ifaceMatches(pattern, name string) bool {
	if stem, open := strings.CutSuffix(pattern, "+"); open {
		return strings.HasPrefix(name, stem)
	}
	return pattern == name
}

func inPrefix(text string, a netip.Addr) verdict {
	if p, err := netip.ParsePrefix(text); err == nil {
		return truth(p.Contains(a))
	}
	if one, err := netip.ParseAddr(text); err == nil {
		return truth(one == a)
	}
	return doubt // a netmask that is no prefix
}

func inPorts(list string, port int) verdict {
	for part := range strings.SplitSeq(list, ",") {
		low, high, ranged := strings.Cut(part, ":")
		from, err := strconv.Atoi(low)
		to := from
		if ranged && err == nil {
			to, err = strconv.Atoi(high)
		}
		if err != nil {
			return doubt
		}
		if from <= port && port <= to {
			return yes
		}
	}
	return no
}

// icmpIs compares with a type, or a type/code of code 0.
func icmpIs(text string, kind int) bool {
	number, _, _ := strings.Cut(text, "/")
	n, err := strconv.Atoi(number)
	return err == nil && n == kind
}

func markOf(text string) (value, mask uint32) {
	left, right, masked := strings.Cut(text, "/")
	v, _ := strconv.ParseUint(left, 0, 32)
	m := uint64(0xffffffff)
	if masked {
		m, _ = strconv.ParseUint(right, 0, 32)
	}
	return uint32(v), uint32(m)
}

// split takes a line of iptables -S apart: words, and quoted words with backslashes.
func split(line string) []string {
	var out []string
	var word strings.Builder
	quoted, any := false, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && quoted && i+1 < len(line):
			i++
			word.WriteByte(line[i])
		case c == '"':
			quoted, any = !quoted, true
		case c == ' ' && !quoted:
			if any || word.Len() > 0 {
				out = append(out, word.String())
			}
			word.Reset()
			any = false
		default:
			word.WriteByte(c)
		}
	}
	if any || word.Len() > 0 {
		out = append(out, word.String())
	}
	return out
}
