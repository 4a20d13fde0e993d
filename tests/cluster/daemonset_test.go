//go:build cluster

package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
)

// podTemplate is a DaemonSet's, with the fields that the kubelet of the tests gives to
// the runtime. The rest stays as it is.
type podTemplate struct {
	Metadata json.RawMessage
	Spec     templateSpec
	whole    testbed.Object
}

type templateSpec struct {
	NodeSelector    map[string]string
	SecurityContext struct{ RunAsUser, RunAsGroup int64 }
	Volumes         []struct {
		Name     string
		HostPath struct{ Path, Type string }
	}
	Containers []struct {
		Name, Image    string
		Command, Args  []string
		ReadinessProbe struct{ Exec struct{ Command []string } }
		VolumeMounts   []struct{ Name, MountPath string }
		// What is not named here is at its default, which crictl's is as well.
		SecurityContext struct {
			AllowPrivilegeEscalation, Privileged, ReadOnlyRootFilesystem bool
			Capabilities                                                 struct{ Add, Drop []string }
		}
	}
}

// UnmarshalJSON keeps the whole as well.
func (p *podTemplate) UnmarshalJSON(b []byte) error {
	var parts struct {
		Metadata json.RawMessage
		Spec     templateSpec
	}
	if err := errors.Join(json.Unmarshal(b, &parts), json.Unmarshal(b, &p.whole)); err != nil {
		return err
	}
	p.Metadata, p.Spec = parts.Metadata, parts.Spec
	return nil
}

// pod is the pod that the DaemonSet's controller would make on the node.
func (p podTemplate) pod(namespace string) testbed.Object {
	spec := testbed.Object{}
	for k, v := range p.whole["spec"].(map[string]any) {
		spec[k] = v
	}
	spec["nodeName"] = nodeName
	return testbed.Object{
		"apiVersion": "v1", "kind": "Pod", "spec": spec,
		"metadata": testbed.Object{"name": fmt.Sprintf("railtune-%d", pod0.Add(1)), "namespace": namespace},
	}
}

// installer is a pod of the DaemonSet on the node.
type installer struct {
	sandbox
	container string
	probe     []string
}

// startInstaller runs a pod of the template as the kubelet would. pluginDir is the
// node's folder of plugins, which stands for the template's.
func startInstaller(t *testing.T, template podTemplate, pluginDir string) *installer {
	t.Helper()
	object := template.pod("railtune")
	name := object["metadata"].(testbed.Object)["name"].(string)
	uid := create(t, "/api/v1/namespaces/railtune/pods", object)
	c, s := template.Spec.Containers[0], template.Spec.SecurityContext
	user := testbed.Object{
		"run_as_user": testbed.Object{"value": s.RunAsUser}, "run_as_group": testbed.Object{"value": s.RunAsGroup},
		"seccomp": testbed.Object{"profile_type": 0}, // RuntimeDefault
	}
	sandboxConfig := testbed.Object{
		"metadata": testbed.Object{"name": name, "namespace": "railtune", "uid": uid, "attempt": 0},
		"linux":    testbed.Object{"cgroup_parent": "/" + cgroup(), "security_context": user},
	}
	var mounts []testbed.Object
	for _, m := range c.VolumeMounts {
		mounts = append(mounts, testbed.Object{"container_path": m.MountPath, "host_path": pluginDir})
	}
	container := testbed.Object{
		"metadata": testbed.Object{"name": c.Name}, "image": testbed.Object{"image": c.Image},
		"command": c.Command, "args": c.Args, "mounts": mounts,
		"linux": testbed.Object{"security_context": testbed.Object{
			"run_as_user": user["run_as_user"], "run_as_group": user["run_as_group"], "seccomp": user["seccomp"],
			"privileged": c.SecurityContext.Privileged, "readonly_rootfs": c.SecurityContext.ReadOnlyRootFilesystem,
			"no_new_privs": !c.SecurityContext.AllowPrivilegeEscalation,
			"capabilities": testbed.Object{"add_capabilities": c.SecurityContext.Capabilities.Add, "drop_capabilities": c.SecurityContext.Capabilities.Drop},
		}},
	}
	dir := t.TempDir()
	i := &installer{sandbox: sandbox{name: name, uid: uid, config: filepath.Join(dir, "pod.json")}, probe: c.ReadinessProbe.Exec.Command}
	containerConfig := filepath.Join(dir, "container.json")
	if err := errors.Join(writeJSON(i.config, sandboxConfig), writeJSON(containerConfig, container)); err != nil {
		t.Fatal(err)
	}
	i.id = mustCRI(t, "runp", i.config)
	t.Cleanup(func() {
		if i.id != "" {
			i.remove(t)
		}
	})
	i.container = mustCRI(t, "create", "--no-pull", i.id, containerConfig, i.config)
	mustCRI(t, "start", i.container)
	if err := node.containerd.until(func() error {
		out, err := cri(t, append([]string{"exec", "--sync", i.container}, i.probe...)...)
		if err != nil {
			return fmt.Errorf("the readiness probe says %s: %w", out, err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return i
}

// inspected is what the runtime says about a container.
func (i *installer) inspected(t *testing.T) (state string, exit, pid int) {
	t.Helper()
	var c struct {
		Status struct {
			State    string
			ExitCode int
		}
		Info struct{ PID int }
	}
	if err := json.Unmarshal([]byte(mustCRI(t, "inspect", i.container)), &c); err != nil {
		t.Fatal(err)
	}
	return c.Status.State, c.Status.ExitCode, c.Info.PID
}

// mustEnd stops the container as the kubelet does, which it has to take as no failure,
// and removes the pod.
func (i *installer) mustEnd(t *testing.T) {
	t.Helper()
	if state, exit, _ := i.inspected(t); state != "CONTAINER_RUNNING" {
		t.Errorf("the container does not stay: it is %s, with %d", state, exit)
	}
	mustCRI(t, "stop", "--timeout", "30", i.container)
	if state, exit, _ := i.inspected(t); state != "CONTAINER_EXITED" || exit != 0 {
		t.Errorf("told to end, the container is %s, with %d", state, exit)
	}
	i.remove(t)
}

// mustHaveNoPrivileges reads what the kernel says of the container's process.
func (i *installer) mustHaveNoPrivileges(t *testing.T) {
	t.Helper()
	_, _, pid := i.inspected(t)
	// The number counts in the namespace of containerd.
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/root/proc/%d/status", node.containerd.cmd.Process.Pid, pid))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"CapPrm:": "0000000000000000", "CapEff:": "0000000000000000", "CapBnd:": "0000000000000000", "CapAmb:": "0000000000000000",
		"NoNewPrivs:": "1", "Seccomp:": "2", "Uid:": "0\t0\t0\t0", "Gid:": "0\t0\t0\t0",
	} {
		if got := strings.TrimSpace(after(t, string(status), key)); got != want {
			t.Errorf("the process has %s %q, want %q", key, got, want)
		}
	}
}

// bareNode takes railtune out of the folder of plugins that containerd has, for the time
// of the test.
func bareNode(t *testing.T) (dir, plugin string) {
	t.Helper()
	dir = filepath.Join(node.dir, "containerd", "bin")
	plugin = filepath.Join(dir, "railtune")
	if err := os.Remove(plugin); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = os.Remove(plugin) // the test may have
		if err := os.Symlink(bin.Railtune, plugin); err != nil {
			t.Error(err)
		}
	})
	return dir, plugin
}

// TestDaemonSet installs railtune on a node without it by a pod of the DaemonSet, has it
// serve a pod, and takes it away again by the same means.
func TestDaemonSet(t *testing.T) {
	runtime := mustContainerd(t)
	r := dist(t)
	r.load(t)
	dir, plugin := bareNode(t)
	createNAD(t, "rail-1", macvlan(node.rails[0], "1.0.0", "rail-1", hostLocal(node.rails[0]), railtune), nil)

	install := startInstaller(t, applyAll(t, kustomize(t, overlay(t, "base", r.version, ""))).Spec.Template, dir)
	r.mustBeInstalled(t, plugin)
	install.mustHaveNoPrivileges(t)
	install.mustEnd(t)
	r.mustBeInstalled(t, plugin) // a restart of the DaemonSet opens no gap

	served := newSandbox(t, "served", "rail-1")
	served.id = mustCRI(t, "runp", served.config)
	served.remove(t)

	remove := startInstaller(t, applyAll(t, kustomize(t, overlay(t, "overlays/uninstall", r.version, ""))).Spec.Template, dir)
	if _, err := os.Lstat(plugin); !os.IsNotExist(err) {
		t.Errorf("uninstalled, the plugin is there (%v)", err)
	}
	remove.mustEnd(t)

	without := newSandbox(t, "without", "rail-1")
	out, err := cri(t, "runp", without.config)
	if err == nil {
		without.id = out
		without.remove(t)
	}
	if err == nil || !strings.Contains(out, `failed to find plugin \"railtune\"`) {
		t.Errorf("without railtune, a pod that needs it says %s (%v)", out, err)
	}
	if !t.Failed() {
		table.Passed(runtime, "railtune installed by its DaemonSet's pod, then a pod through Multus", "1.0.0", "ADD", "DEL")
	}
}
