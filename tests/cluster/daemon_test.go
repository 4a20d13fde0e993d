//go:build cluster

package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/railtune/railtune/pkg/testbed"
)

// serviceAccount is where a pod finds its token; in the sandbox, /run is private.
const serviceAccount = "/run/secrets/kubernetes.io/serviceaccount"

// daemonVersion has to be the version of the runtime's network as well: the daemon puts
// it over that of each request, cannot read prevResult when they differ, and the shim
// then says nothing about a DEL that did not happen.
const daemonVersion = "1.0.0"

// startDaemon starts Multus' daemon as its pod would: it knows the API server from
// its environment, and its configuration only says where to listen.
func (m *machine) startDaemon(sockets string) (err error) {
	ca, err := os.ReadFile(filepath.Join(m.dir, "certs", "apiserver.crt"))
	if err != nil {
		return err
	}
	config, conflists := filepath.Join(m.dir, "daemon.json"), filepath.Join(m.dir, "daemon.d")
	if err := errors.Join(
		os.MkdirAll(serviceAccount, 0o755), os.Mkdir(conflists, 0o755),
		os.WriteFile(filepath.Join(serviceAccount, "token"), []byte(token), 0o600),
		os.WriteFile(filepath.Join(serviceAccount, "ca.crt"), ca, 0o644),
		// The daemon writes a configuration of its own, which nobody here uses, and
		// ends at once (4.3.0) where it is not to.
		writeJSON(config, testbed.Object{
			"cniVersion": daemonVersion, "socketDir": sockets, "cniConfigDir": conflists,
			"multusConfigFile": "auto", "multusAutoconfigDir": m.clusterNetwork, "logLevel": "verbose", "logToStderr": true,
		}),
	); err != nil {
		return err
	}
	m.daemon, err = start(m.Namespace, m.dir, []string{
		"KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=6443", "MULTUS_NODE_NAME=" + nodeName,
	}, filepath.Join(bin.clients, "multus", "multus-daemon"), "-config="+config)
	if err != nil {
		return err
	}
	return m.daemon.until(func() error {
		if !strings.Contains(m.daemon.said(), "API readiness check done!") {
			return errors.New("not ready")
		}
		return nil
	})
}
