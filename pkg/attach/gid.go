package attach

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/config"
	"github.com/railtune/railtune/pkg/netstate"
	"github.com/railtune/railtune/pkg/plan"
	"github.com/railtune/railtune/pkg/rdma"
)

// RDMA is what attach needs of the RDMA ports that serve a rail. *rdma.Link is the real
// one.
type RDMA interface {
	// Unserved says why the rail has no port, "" where it has one.
	Unserved() string
	// Wait returns what still lacks a RoCE v2 GID when the context is over.
	Wait(ctx context.Context, addrs []netip.Addr) ([]rdma.Absent, error)
	Close()
}

// proveGIDs proves that each address of the plan is a RoCE v2 GID of the rail's RDMA
// device, as verify.gid says. It comes last, as the kernel's work queue has then had the
// time of the other proofs. Without a device it only says so where that is enforced.
func (r *Rail) proveGIDs(ctx context.Context, cfg *config.Config, p *plan.Plan, rail *netstate.Link) error {
	mode := cfg.Verify.GID
	if r.RDMA == nil || mode == config.Off || len(p.Addresses) == 0 {
		return nil
	}
	device, err := r.RDMA(rail)
	switch {
	case errors.Is(err, rdma.ErrNone) && mode == config.Warn:
		return nil
	case errors.Is(err, rdma.ErrNone):
		return cnierr.New(cnierr.Kernel, "verify.gid is enforce, and %w: load the RDMA driver of %s, or set verify.gid to warn", err, r.IfName)
	case err != nil:
		return r.judge(mode, cnierr.New(cnierr.Link, "the RDMA device of %s cannot be read: %w", r.IfName, err))
	}
	defer device.Close()
	if why := device.Unserved(); why != "" {
		if mode == config.Warn {
			r.Log.Debugf("no GIDs to look for: %s: %s", r.IfName, why)
			return nil
		}
		return cnierr.New(cnierr.Link, "verify.gid is enforce, and %s in %s has no RDMA device: %s; "+
			"on a rail without RDMA set verify.gid to warn or off", r.IfName, r.NetNS, why)
	}
	return r.judge(mode, r.missingGIDs(ctx, cfg, p, device))
}

func (r *Rail) missingGIDs(ctx context.Context, cfg *config.Config, p *plan.Plan, device RDMA) error {
	ctx, cancel := context.WithTimeout(ctx, cfg.Verify.Timeout)
	defer cancel()
	absent, err := device.Wait(ctx, p.Own())
	if err != nil {
		return cnierr.New(cnierr.Link, "the GIDs of %s cannot be read: %w", r.IfName, err)
	}
	if len(absent) == 0 {
		return nil
	}
	lines := make([]string, len(absent))
	for i, a := range absent {
		lines[i] = a.String()
	}
	remedy := `the kernel log may say why ("unable to add gid"); taking the address away and adding it again makes the GID anew`
	if absent[0].Full {
		remedy = "each address of the device's interface, and of every link stacked on it, takes entries: use fewer of them on this device"
	}
	more := ""
	if n := len(absent) - 1; n > 0 {
		more = fmt.Sprintf(", and %d more is missing (see details)", n)
	}
	return cnierr.New(cnierr.Link, "%s: %s%s, after %v: RDMA from that address ends in "+
		"\"ibv_modify_qp failed with 61 No data available\"; %s",
		r.IfName, lines[0], more, cfg.Verify.Timeout, remedy).With(strings.Join(lines, "\n"))
}
