//go:build tools

// Package tools names the program that installs charts, so that go.mod and
// go.sum pin everything `cargo xtask control-plane --node` builds.
package tools

import (
	_ "helm.sh/helm/v3/cmd/helm"
)
