//go:build tools

// Package tools names the program of Open Cluster Management that ours is compared with, so
// that go.mod and go.sum pin everything `cargo xtask control-plane --peers` builds.
package tools

import (
	_ "open-cluster-management.io/ocm/cmd/placement"
)
