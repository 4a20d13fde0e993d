# railtune: everything a user or CI runs. All of it needs Go; what makes network
# namespaces (demo, lab, test, bench) needs root, and takes missing Debian
# packages from apt.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build

GO ?= go
# Runs, not seconds: a target that is stopped by the clock now and then fails of that
# ("context deadline exceeded").
FUZZTIME ?= 100000x
# More flags for go test, as in make test TESTFLAGS='-run Plan -v'.
TESTFLAGS ?=

# A checkout that belongs to another user (CI, containers) cannot be asked for
# its revision, and go build would fail over that.
export GOFLAGS := $(GOFLAGS) -buildvcs=false
STATIC := CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w'

# What the product and the tools are made from. Tests are left out: they change
# no binary.
SOURCES := go.mod $(wildcard go.sum) $(shell find pkg plugins -name '*.go' ! -name '*_test.go' 2>/dev/null)
TOOLS := scripts/tools/go.mod scripts/tools/go.sum

.PHONY: build tools demo lab test bench lint fuzz clean need-go need-kernel

build: bin/railtune ## the plugin: bin/railtune

# Functions at 16 bytes instead of 32: fewer pages to map at every start (docs/speed.md).
bin/railtune: $(SOURCES) | need-go
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -funcalign=16' -o $@ ./plugins/meta/railtune

tools: bin/cni/.built ## cnitool and the plugins of the chain: bin/cni

bin/cni/.built: $(TOOLS) | need-go
	cd scripts/tools && $(STATIC) -o ../../bin/cni/ $$($(GO) list tool | grep '^github.com/containernetworking/')
	touch $@

bin/lint/.built: $(TOOLS) | need-go
	cd scripts/tools && $(STATIC) -o ../../bin/lint/ mvdan.cc/gofumpt honnef.co/go/tools/cmd/staticcheck
	touch $@

demo: need-kernel build tools ## two pods with 16 rails each, before and after railtune
	$(GO) build -o bin/demo ./scripts/demo
	bin/demo

lab: need-kernel build tools ## the published table of settings, measured here
	$(GO) build -o bin/lab ./scripts/lab
	bin/lab

# Without root the tests that need the kernel skip and say so. One package at a
# time: namespaces share the machine's neighbour table, which some tests fill.
test: need-go build tools ## all tests, race detector on
	@scripts/need cc $$([ "$$(id -u)" != 0 ] || echo ip ping nft iptables sysctl)
	CGO_ENABLED=1 $(GO) build -race ./...
	CGO_ENABLED=1 RAILTUNE_BIN=$(CURDIR)/bin $(GO) test -race -count=1 -p 1 $(TESTFLAGS) ./...

bench: need-kernel build tools ## benchmarks, and railtune next to tuning and sbr
	$(GO) test -run '^$$' -bench . -benchmem ./pkg/...
	$(GO) build -o bin/bench ./scripts/bench
	bin/bench

lint: bin/lint/.built ## gofumpt, go vet, staticcheck
	scripts/lint

fuzz: need-go ## every fuzz target, FUZZTIME runs or seconds
	scripts/fuzz $(FUZZTIME)

clean: ## removes bin/
	rm -rf bin

need-go:
	@scripts/need go

need-kernel: need-go
	@scripts/need root ip ping nft

# Not part of test: what these run is built by them alone, from modules of its own.
.PHONY: test-clients test-cluster

test-clients: need-kernel build tools ## the real cnitool and Multus, every verb and version; prints the table
	scripts/clients/build multus
	cd tests/clients && RAILTUNE_BIN=$(CURDIR)/bin $(GO) test -tags clients -count=1 -parallel 6 $(TESTFLAGS)

test-cluster: need-kernel build tools image ## a real API server, Multus, SR-IOV operator, whereabouts, containerd; prints the table
	scripts/clients/debian
	scripts/clients/build multus loopback crictl whereabouts operator apiserver kustomize kubectl
	cd tests/cluster && RAILTUNE_BIN=$(CURDIR)/bin $(GO) test -tags cluster -count=1 -timeout 20m $(TESTFLAGS)

.PHONY: test-docs

test-docs: need-kernel build tools ## runs every command of the documentation, but those on a cluster: test-cluster does
	RAILTUNE_BIN=$(CURDIR)/bin $(GO) test -tags docs -count=1 ./tests/docs $(TESTFLAGS)

# Releases. What they are made from, and how the same bytes come out again, is in
# docs/release.md.
.PHONY: release image verify-release

release: need-go ## static binaries for amd64 and arm64, SBOMs, checksums: dist
	scripts/release/build dist

image: release ## the container image that installs railtune: dist/railtune-image.oci.tar
	scripts/image/build dist

verify-release: image ## runs it on both architectures, builds HEAD twice elsewhere, and compares
	scripts/release/try dist
	scripts/release/arm64 dist
	scripts/release/verify dist

# Needs no root and nothing installed: the machine is made from Debian's packages in
# bin/vm, once, and all that runs is in it. docs/vm.md.
.PHONY: test-vm

test-vm: need-go build tools ## a virtual machine with SR-IOV, Soft-RoCE and ipvlan; prints the tables
	scripts/vm/test $(TESTFLAGS)
