package kernel

import (
	"errors"
	"math"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/nl"
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
	return k.RulesUpTo(f, math.MaxUint32, keep)
}

// RulesUpTo is Rules for those with a priority up to last. Its cost does not grow with
// the rules behind that: the kernel keeps rules by priority (net/core/fib_rules.c,
// fib_newrule) and makes a list piece by piece, as it is read.
//
// It must be called on a thread in the namespace that the socket is of, as it may have
// to replace the socket.
func (k *Netlink) RulesUpTo(f policy.Family, last uint32, keep func(*FoundRule) bool) ([]FoundRule, error) {
	var out []FoundRule
	var r FoundRule // one for all, as keep makes it escape
	err := nl.Dump(f.String()+" rules", func() error {
		out = out[:0]
		m := nl.NewMessage(unix.RTM_GETRULE, rtmsg{family: uint8(f)}.bytes())
		err := k.dump(m, unix.RTM_NEWRULE, func(body []byte) (err error) {
			switch r, err = parseRule(body); {
			case err != nil:
				return err
			case r.Priority > last:
				return nl.ErrEnough
			case r.Family == f && keep(&r):
				out = append(out, r)
			}
			return nil
		})
		if errors.Is(err, nl.ErrEnough) {
			return k.socket.Reopen()
		}
		return err
	})
	return out, err
}

// parseRule decodes an RTM_NEWRULE message (include/uapi/linux/fib_rules.h).
func parseRule(m []byte) (FoundRule, error) {
	h, attrs, err := parseRtmsg(m)
	if err != nil {
		return FoundRule{}, err
	}
	r := FoundRule{Rule: policy.Rule{Family: policy.Family(h.family), Action: policy.Action(h.kind), Table: uint32(h.table)}}
	r.More = h.tos != 0 || h.dstLen != 0 || h.flags&unix.FIB_RULE_INVERT != 0
	err = nl.EachAttr(attrs, func(kind uint16, v []byte) {
		switch kind {
		case unix.FRA_SRC:
			r.From = prefixOf(v, int(h.srcLen))
		case unix.FRA_OIFNAME:
			r.OIF = unix.ByteSliceToString(v)
		case unix.FRA_PRIORITY:
			r.Priority = nl.Uint32(v)
		case unix.FRA_TABLE:
			r.Table = nl.Uint32(v)
		case unix.FRA_PROTOCOL:
			if len(v) > 0 {
				r.Protocol = v[0]
			}
		case unix.FRA_SUPPRESS_PREFIXLEN, unix.FRA_SUPPRESS_IFGROUP:
			r.More = r.More || nl.Uint32(v) != noSuppress
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

// AddRule makes a rule, and a second one where the same is there: who cares looks first.
// To refuse it the kernel would compare it with all rules (NLM_F_EXCL,
// net/core/fib_rules.c, rule_exists), half a millisecond with ten thousand.
func (k *Netlink) AddRule(r policy.Rule) error {
	return k.socket.Change(ruleMessage(unix.RTM_NEWRULE, r), unix.NLM_F_CREATE)
}

// DelRule removes a rule; one that is not there is no error. The device of a rule
// need not exist any more.
func (k *Netlink) DelRule(r policy.Rule) error {
	if err := k.socket.Change(ruleMessage(unix.RTM_DELRULE, r), 0); err != nil && !gone(err) {
		return err
	}
	return nil
}

func ruleMessage(kind uint16, r policy.Rule) nl.Message {
	h := rtmsg{family: uint8(r.Family), kind: uint8(r.Action)}
	if r.From.IsValid() {
		h.srcLen = uint8(r.From.Bits())
	}
	if r.Table < wideTable {
		h.table = uint8(r.Table)
	}
	m := nl.NewMessage(kind, h.bytes())
	if r.From.IsValid() {
		m.Addr(unix.FRA_SRC, r.From.Addr())
	}
	m.Uint32(unix.FRA_PRIORITY, r.Priority)
	if r.Table >= wideTable {
		m.Uint32(unix.FRA_TABLE, r.Table)
	}
	if r.OIF != "" {
		m.Attr(unix.FRA_OIFNAME, append([]byte(r.OIF), 0)...)
	}
	if r.Protocol != 0 {
		m.Attr(unix.FRA_PROTOCOL, r.Protocol)
	}
	return m
}

func prefixOf(b []byte, bits int) netip.Prefix {
	a, ok := netip.AddrFromSlice(b)
	if !ok {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(a, bits)
}
