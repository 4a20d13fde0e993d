package kernel

import (
	"errors"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/policy"
)

// FoundRule is a rule as the kernel has it.
type FoundRule struct {
	policy.Rule
	// More says that the rule matches on more than policy.Rule can say (a
	// destination, a mark, …): not one that railtune made, whatever its protocol.
	More bool
}

// Ours reports whether railtune made the rule.
func (r FoundRule) Ours() bool { return r.Protocol == policy.Protocol && !r.More }

// Rules returns the rules of a family that keep accepts, in the order in which the
// kernel tries them.
func (k *Netlink) Rules(f policy.Family, keep func(*FoundRule) bool) ([]FoundRule, error) {
	var out []FoundRule
	err := Dump(f.String()+" rules", func() error {
		out = out[:0]
		header := &nl.RtMsg{RtMsg: unix.RtMsg{Family: uint8(f)}} // same layout as fib_rule_hdr
		return k.iterate(unix.RTM_GETRULE, unix.RTM_NEWRULE, header, func(m []byte) error {
			r, err := parseRule(m)
			if err == nil && r.Family == f && keep(&r) {
				out = append(out, r)
			}
			return err
		})
	})
	return out, err
}

// errShort is a netlink message that ends before its header does.
var errShort = errors.New("netlink message too short")

// parseRule decodes an RTM_NEWRULE message (include/uapi/linux/fib_rules.h).
func parseRule(m []byte) (FoundRule, error) {
	if len(m) < unix.SizeofRtMsg {
		return FoundRule{}, errShort
	}
	h := nl.DeserializeRtMsg(m)
	r := FoundRule{Rule: policy.Rule{Family: policy.Family(h.Family), Action: policy.Action(h.Type), Table: uint32(h.Table)}}
	r.More = h.Tos != 0 || h.Dst_len != 0 || h.Flags&netlink.FibRuleInvert != 0
	err := eachAttr(m[unix.SizeofRtMsg:], func(kind uint16, v []byte) {
		switch kind {
		case nl.FRA_SRC:
			r.From = prefixOf(v, int(h.Src_len))
		case nl.FRA_OIFNAME:
			r.OIF = unix.ByteSliceToString(v)
		case nl.FRA_PRIORITY:
			r.Priority = nativeUint32(v)
		case nl.FRA_TABLE:
			r.Table = nativeUint32(v)
		case nl.FRA_PROTOCOL:
			if len(v) > 0 {
				r.Protocol = v[0]
			}
		case nl.FRA_SUPPRESS_PREFIXLEN, nl.FRA_SUPPRESS_IFGROUP:
			r.More = r.More || nativeUint32(v) != noSuppress
		default: // the kernel reports selectors only where they are set
			r.More = true
		}
	})
	if r.Action != policy.Lookup {
		r.Table = 0
	}
	return r, err
}

// noSuppress is what the kernel reports for a rule that suppresses nothing (-1).
const noSuppress = 0xffffffff

// AddRule makes a rule; the same rule made before is an error (EEXIST).
func (k *Netlink) AddRule(r policy.Rule) error {
	return k.handle.RuleAdd(toRule(r))
}

// DelRule removes a rule; one that is not there is no error. The device of a rule
// need not exist any more.
func (k *Netlink) DelRule(r policy.Rule) error {
	if err := k.handle.RuleDel(toRule(r)); err != nil && !gone(err) {
		return err
	}
	return nil
}

func toRule(r policy.Rule) *netlink.Rule {
	out := netlink.NewRule()
	out.Family, out.Priority, out.Table = int(r.Family), int(r.Priority), int(r.Table)
	out.OifName, out.Type, out.Protocol = r.OIF, uint8(r.Action), r.Protocol
	if r.From.IsValid() {
		out.Src = ipNet(r.From)
	}
	return out
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func prefixOf(b []byte, bits int) netip.Prefix {
	a, ok := netip.AddrFromSlice(b)
	if !ok {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(a, bits)
}
