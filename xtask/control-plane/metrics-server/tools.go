//go:build tools

// Package tools names the program that serves the metrics API, so that
// go.mod and go.sum pin everything `cargo xtask control-plane --node` builds.
package tools

import (
	_ "sigs.k8s.io/metrics-server/cmd/metrics-server"
)
