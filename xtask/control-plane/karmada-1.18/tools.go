//go:build tools

// Package tools names the programs of Karmada that ours are compared with, so
// that go.mod and go.sum pin everything `cargo xtask control-plane --peers` builds.
package tools

import (
	_ "github.com/karmada-io/karmada/cmd/scheduler"
	_ "github.com/karmada-io/karmada/cmd/scheduler-estimator"
)
