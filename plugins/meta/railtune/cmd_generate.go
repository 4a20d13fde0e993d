package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/railtune/railtune/pkg/generate"
)

const generateSynopsis = "KIND [flags] | from-tuning FILE [--supernets PREFIX] [--out DIR]"

// fromTuning is the kind that reads its rails from what is there.
const fromTuning = "from-tuning"

func generateHelp() string {
	var b strings.Builder
	b.WriteString("Prints what a set of rails needs. KIND is one of\n\n")
	for _, k := range generate.Kinds() {
		fmt.Fprintf(&b, "  %-13s %s\n", k.Name, k.Says)
	}
	fmt.Fprintf(&b, "  %-13s %s\n", fromTuning, "FILE (- is stdin) with railtune in the place of tuning and sbr")
	b.WriteString(`
What differs from rail to rail is a pattern: %d is the rail's number, %x the same in hexadecimal,
%02d with zeros before it, %+1d one more than it. What is generated goes to stdout, or with --out
into a folder, a file for each object; notes about it go to stderr. The same command line prints
the same bytes.

  railtune generate nad --rails 16 --parent rdma%d --ipam nv-ipam --pool rail%d \
      --supernets 10.61.0.0/16
  railtune generate sriovnetwork --rails 8 --resource rail%d --ipam whereabouts \
      --subnet 10.61.%d.0/24 --gateway 10.61.%d.254 --supernets 10.61.0.0/16
  railtune generate nad --file rails.yaml | kubectl apply -f -
  kubectl get net-attach-def -A -o yaml | railtune generate from-tuning -

A file has the flags' names as its fields; flags go over it. It and what each kind makes of
them is described in docs/generate.md.`)
	return b.String()
}

func runGenerate(args []string) int {
	const name = "generate"
	var out, file string
	r := generate.Default()
	fs := flags(name, generateSynopsis, generateHelp())
	fs.StringVar(&out, "out", "", "write files into this `FOLDER` instead of to stdout")
	fs.StringVar(&file, "file", "", "read the rails from this YAML `FILE` first")
	railFlags(fs, &r)
	kind, rest := "", args
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		kind, rest = args[0], args[1:]
	}
	if kind == fromTuning {
		return runFromTuning(rest)
	}
	if status, ok := parse(fs, rest); !ok {
		return status
	}
	if kind == "" {
		return complain(name, errors.New("which kind? See \"railtune generate --help\""))
	}
	if file != "" {
		text, err := read(file)
		if err != nil {
			return complain(name, err)
		}
		if r, err = generate.Load(text); err != nil {
			return complain(name, fmt.Errorf("%s: %w", file, err))
		}
		if status, ok := parse(fs, rest); !ok { // once more, over the file
			return status
		}
	}
	made, err := r.Generate(kind)
	if err == nil {
		err = deliver(name, made, out)
	}
	if err != nil {
		return complain(name, err)
	}
	return exitGood
}

// railFlags are the fields of generate.Rails as flags.
func railFlags(fs *flag.FlagSet, r *generate.Rails) {
	ipam := func(s string) error { r.IPAM = s; return nil }
	object := func(to *any) func(string) error { return func(s string) error { *to = s; return nil } }
	fs.IntVar(&r.Count, "rails", r.Count, "how many rails")
	fs.IntVar(&r.First, "first", r.First, "the first rail's number")
	fs.StringVar(&r.Name, "name", r.Name, "the networks' names, a `PATTERN`")
	fs.StringVar(&r.Namespace, "namespace", r.Namespace, "of the objects; networkNamespace of a SriovNetwork")
	fs.StringVar(&r.Plugin, "plugin", r.Plugin, "the interface plugin: ipvlan, macvlan, host-device or sriov")
	fs.StringVar(&r.Parent, "parent", r.Parent, "the node's interfaces, a `PATTERN`")
	fs.IntVar(&r.MTU, "mtu", r.MTU, "of the pod's interface; 0 leaves it to the plugin")
	fs.StringVar(&r.Resource, "resource", r.Resource, "the device plugin's resource, a `PATTERN`: example.com/rail%d")
	fs.StringVar(&r.CNIVersion, "cni-version", r.CNIVersion, "of the networks: 0.3.1, 0.4.0, 1.0.0 or 1.1.0")
	fs.Func("ipam", "`KIND`: whereabouts, host-local, static, nv-ipam, dhcp, none, or its JSON (default none)", ipam)
	fs.StringVar(&r.Pool, "pool", r.Pool, "nv-ipam's pool, a `PATTERN`")
	fs.StringVar(&r.Address, "address", r.Address, "static's address with its length, a `PATTERN`; without it the pod asks for one")
	fs.StringVar(&r.Subnet, "subnet", r.Subnet, "whereabouts' or host-local's, a `PATTERN`; IPv4,IPv6 for both")
	fs.StringVar(&r.Gateway, "gateway", r.Gateway, "the rails' routers, a `PATTERN`; IPv4,IPv6 for both")
	fs.StringVar(&r.Supernets, "supernets", r.Supernets, "`PREFIXES` that cover all rails, with commas between")
	fs.Func("interface", "more fields of the interface plugin, or of the SriovNetwork: a `JSON` object", object(&r.Interface))
	fs.Func("chain", "plugins between it and railtune: `JSON` objects with commas between", object(&r.Chain))
	fs.Func("railtune", "more fields of railtune's own: a `JSON` object", object(&r.Railtune))
	fs.StringVar(&r.DeviceClass, "device-class", r.DeviceClass, "DRANET's device class")
}

// runFromTuning takes the file before the flags or behind them.
func runFromTuning(args []string) int {
	const name = "generate " + fromTuning
	var out, file string
	var add generate.Addition
	fs := flags(name, "FILE [--supernets PREFIX] [--out DIR]",
		"Prints FILE (- is stdin) with railtune in the place of tuning and sbr, and says on stderr what it\n"+
			"dropped, moved and kept, and why. FILE holds network attachment definitions or SriovNetworks in\n"+
			"YAML or JSON, or a conflist. What it printed comes back as it is.")
	fs.StringVar(&out, "out", "", "write a file into this `FOLDER` instead of to stdout")
	fs.StringVar(&add.Supernets, "supernets", "", "`PREFIXES` that cover all rails, with commas between, for railtune's entry")
	if len(args) > 0 && (args[0] == "-" || !strings.HasPrefix(args[0], "-")) {
		file, args = args[0], args[1:]
	} else if n := len(args) - 1; n > 0 && !strings.HasPrefix(args[n], "--") {
		file, args = args[n], args[:n]
	}
	if status, ok := parse(fs, args); !ok {
		return status
	}
	if file == "" {
		return complain(name, errors.New("which file? - is stdin"))
	}
	text, err := read(file)
	if err != nil {
		return complain(name, err)
	}
	made, err := generate.FromTuning(text, add)
	if err == nil {
		err = deliver(name, made, out)
	}
	if err != nil {
		return complain(name, err)
	}
	return exitGood
}

func read(file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(file)
}

// deliver prints what was generated, or writes it into a folder, and says the notes.
func deliver(name string, made generate.Output, folder string) error {
	for _, n := range made.Notes {
		fmt.Fprintf(os.Stderr, "railtune %s: note: %s\n", name, n)
	}
	if folder != "" {
		for _, f := range made.Files {
			if err := os.WriteFile(filepath.Join(folder, f.Name), []byte(f.Text), 0o644); err != nil {
				return err
			}
		}
		return nil
	}
	text, err := made.Stream()
	if err != nil {
		return err
	}
	_, err = os.Stdout.WriteString(text)
	return err
}
