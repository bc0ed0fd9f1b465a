package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

// event writes the event of a pod, read from a file in JSON, as a watch in protobuf carries it, without its length.
func event(out io.Writer, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var read struct {
		Type   string
		Object corev1.Pod
	}
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return err
	}
	var object bytes.Buffer
	if err := protobuf.NewSerializer(scheme, scheme).Encode(&read.Object, &object); err != nil {
		return err
	}
	whole := metav1.WatchEvent{Type: read.Type, Object: runtime.RawExtension{Raw: object.Bytes()}}
	encoded, err := whole.Marshal()
	if err != nil {
		return err
	}
	_, err = out.Write(encoded)
	return err
}
