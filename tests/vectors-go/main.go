// Records how Kubernetes itself answers the questions loadline-machinery and loadline-core answer, as JSON
// files the Rust tests read. `cargo xtask codegen records` runs it and writes vectors/machinery and vectors/core.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"log"
	"os"
	"path/filepath"
)

func main() {
	out := flag.String("out", filepath.Join("..", "..", "vectors"), "folder for the folders with the recorded files")
	flag.Parse()
	machinery, core := filepath.Join(*out, "machinery"), filepath.Join(*out, "core")
	for _, folder := range []string{machinery, core} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			log.Fatal(err)
		}
	}
	write(machinery, "quantity.json", quantities())
	write(machinery, "quantity-arithmetic.json", arithmetic())
	write(machinery, "label-selector.json", labelSelectors())
	write(core, "pod-resources.json", podResources())
	write(core, "node-affinity.json", nodeAffinities())
	write(core, "toleration.json", tolerations())
}

// section is one named part of a file: a list with one row per line, so that diffs stay readable.
type section struct {
	name string
	rows []any
}

// write stores sections as a JSON object of arrays, one row per line.
func write(folder, name string, sections []section) {
	var b bytes.Buffer
	b.WriteString("{\n")
	for i, s := range sections {
		key := must(json.Marshal(s.name))
		b.Write(key)
		b.WriteString(": [\n")
		for j, row := range s.rows {
			line := encode(row)
			b.Write(line)
			if j < len(s.rows)-1 {
				b.WriteByte(',')
			}
			b.WriteByte('\n')
		}
		b.WriteString("]")
		if i < len(sections)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	b.WriteString("}\n")
	if err := os.WriteFile(filepath.Join(folder, name), b.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}

func encode(row any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(row); err != nil {
		log.Fatal(err)
	}
	return bytes.TrimSpace(b.Bytes())
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

func rows[T any](in []T) []any {
	out := make([]any, len(in))
	for i := range in {
		out[i] = in[i]
	}
	return out
}
