// Command pod is all there is in the image of the tests' pods: without arguments it
// waits to be ended, as a pause container and a workload; `pod show IFNAME` prints
// what a process in the pod sees of a rail.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/vishvananda/netlink"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "show" {
		if err := show(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, "pod:", err)
			os.Exit(1)
		}
		return
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	<-end
}

func show(rail string) error {
	for _, key := range []string{"arp_ignore", "arp_announce"} {
		b, err := os.ReadFile("/proc/sys/net/ipv4/conf/" + rail + "/" + key)
		if err != nil {
			return err
		}
		fmt.Printf("%s=%s", key, b)
	}
	link, err := netlink.LinkByName(rail)
	if err != nil {
		return err
	}
	addrs, err := netlink.AddrList(link, netlink.FAMILY_V4)
	if err != nil {
		return err
	}
	for _, a := range addrs {
		fmt.Println("addr", a.IP)
	}
	rules, err := netlink.RuleList(netlink.FAMILY_V4)
	if err != nil {
		return err
	}
	for _, r := range rules {
		fmt.Println("rule", r.Priority, "src", r.Src, "oif", r.OifName, "protocol", r.Protocol)
	}
	return nil
}
