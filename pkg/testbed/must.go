package testbed

import "testing"

// MustNamespace is NewNamespace for a test: it ends the test on failure, skips
// it without root, and closes the namespace at its end.
func MustNamespace(t testing.TB, role string) *Namespace {
	t.Helper()
	NeedRoot(t)
	n, err := NewNamespace(role)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mustClose(t, n.Close()) })
	return n
}

// MustFabric is NewFabric for a test, as MustNamespace is.
func MustFabric(t testing.TB, o Options) *Fabric {
	t.Helper()
	NeedRoot(t)
	f, err := NewFabric(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mustClose(t, f.Close()) })
	return f
}

// MustSnapshot is n.Snapshot for a test.
func MustSnapshot(t testing.TB, n *Namespace) Snapshot {
	t.Helper()
	s, err := n.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// MustRailtune is FindRailtune for a test.
func MustRailtune(t testing.TB) string {
	t.Helper()
	path, err := FindRailtune()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func mustClose(t testing.TB, err error) {
	if err != nil {
		t.Errorf("removing what the test made: %v", err)
	}
}
