//go:build cluster

package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
)

// Where the API server keeps what the tests make.
const (
	nads    = "/apis/k8s.cni.cncf.io/v1/namespaces/default/network-attachment-definitions"
	pods    = "/api/v1/namespaces/default/pods"
	ippools = "/apis/whereabouts.cni.cncf.io/v1alpha1/namespaces/kube-system/ippools"
)

// call sends a request to the API server and decodes the answer into out.
func (m *machine) call(method, path, kind string, body []byte, out any) error {
	client := http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // nobody else is on this loopback
		DisableKeepAlives: true,
		DialContext: func(_ context.Context, network, addr string) (conn net.Conn, err error) {
			err = m.Do(func() error { conn, err = net.Dial(network, addr); return err })
			return conn, err
		},
	}}
	req, err := http.NewRequest(method, server+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", kind)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, answer)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer, out)
}

func (m *machine) get(path string, out any) error {
	return m.call(http.MethodGet, path, "application/json", nil, out)
}

// create makes an object for the time of the test and returns its uid.
func create(t *testing.T, list string, object testbed.Object) (uid string) {
	t.Helper()
	b, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var made struct{ Metadata struct{ Name, UID string } }
	if err := node.call(http.MethodPost, list, "application/json", b, &made); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		now := []byte(`{"gracePeriodSeconds":0}`)
		if err := node.call(http.MethodDelete, list+"/"+made.Metadata.Name, "application/json", now, nil); err != nil {
			t.Errorf("removing what the test made: %v", err)
		}
	})
	return made.Metadata.UID
}

// createNAD makes a network attachment definition.
func createNAD(t *testing.T, name string, config any, annotations testbed.Object) {
	t.Helper()
	text, given := config.(string)
	if !given {
		b, err := json.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		text = string(b)
	}
	create(t, nads, testbed.Object{
		"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
		"metadata": testbed.Object{"name": name, "annotations": annotations},
		"spec":     testbed.Object{"config": text},
	})
}
