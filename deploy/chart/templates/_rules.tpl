{{/* What accounts may do, and no more. `cargo xtask codegen plain` makes the files for those who use no Helm from this. */}}

{{- define "loadline.rules.leases" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, create, update]
{{- end }}

{{- define "loadline.rules.events" -}}
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end }}

{{/* Everything a decision about a pod depends on. */}}
{{- define "loadline.rules.cluster" -}}
- apiGroups: [""]
  resources: [nodes, pods, namespaces, persistentvolumeclaims, persistentvolumes, services, replicationcontrollers]
  verbs: [list, watch]
- apiGroups: [apps]
  resources: [replicasets, statefulsets, deployments]
  verbs: [list, watch]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [list, watch]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [list, watch]
- apiGroups: [scheduling.k8s.io]
  resources: [priorityclasses]
  verbs: [list, watch]
- apiGroups: [storage.k8s.io]
  resources: [storageclasses, csinodes, csidrivers, csistoragecapacities]
  verbs: [list, watch]
- apiGroups: [analysis.crane.io]
  resources: [recommendations]
  verbs: [list, watch]
- apiGroups: [ensurance.crane.io]
  resources: [nodeqoss, avoidanceactions]
  verbs: [list, watch]
- apiGroups: [metrics.k8s.io]
  resources: [nodes, pods]
  verbs: [list]
{{- end }}

{{- define "loadline.rules.scheduler" -}}
{{ include "loadline.rules.cluster" . }}
{{- if ne .Values.scheduler.mode "shadow" }}
- apiGroups: [""]
  resources: [pods]
  verbs: [get]
- apiGroups: [""]
  resources: [pods/binding, pods/eviction]
  verbs: [create]
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [persistentvolumes, persistentvolumeclaims]
  verbs: [patch]
{{ include "loadline.rules.events" . }}
{{- end }}
{{- end }}

{{- define "loadline.rules.annotator" -}}
- apiGroups: [""]
  resources: [nodes, pods]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [nodes]
  verbs: [patch]
- apiGroups: [metrics.k8s.io]
  resources: [nodes]
  verbs: [list]
{{ include "loadline.rules.events" . }}
{{- end }}

{{/* The past of nodes is kept in ConfigMaps of a number that grows with the cluster. */}}
{{- define "loadline.rules.annotator.namespaced" -}}
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, create, patch]
{{ include "loadline.rules.leases" . }}
{{- end }}

{{- define "loadline.rules.recommender" -}}
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
- apiGroups: [apps]
  resources: [replicasets]
  verbs: [list, watch]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [list, watch]
- apiGroups: [analysis.crane.io]
  resources: [recommendations]
  verbs: [list, watch, create, patch, delete]
- apiGroups: [metrics.k8s.io]
  resources: [pods]
  verbs: [list]
{{ include "loadline.rules.events" . }}
{{- end }}

{{- define "loadline.rules.rebalance" -}}
{{ include "loadline.rules.cluster" . }}
{{- if .Values.rebalance.act }}
- apiGroups: [""]
  resources: [nodes]
  verbs: [get, patch]
- apiGroups: [""]
  resources: [pods/eviction]
  verbs: [create]
{{- end }}
{{ include "loadline.rules.events" . }}
{{- end }}

{{/* Marks on nodes also without act: when that is switched off, the agent that ends takes them away. */}}
{{- define "loadline.rules.agent" -}}
- apiGroups: [""]
  resources: [nodes, pods]
  verbs: [list, watch]
- apiGroups: [ensurance.crane.io]
  resources: [nodeqoss, podqoss, avoidanceactions]
  verbs: [list, watch]
{{ include "loadline.rules.events" . }}
- apiGroups: [""]
  resources: [nodes]
  verbs: [get, patch]
- apiGroups: [""]
  resources: [nodes/status]
  verbs: [patch]
{{- if .Values.agent.act }}
- apiGroups: [""]
  resources: [pods/eviction]
  verbs: [create]
{{- end }}
{{- end }}

{{- define "loadline.rules.estimator" -}}
- apiGroups: [""]
  resources: [nodes, pods, resourcequotas]
  verbs: [list, watch]
- apiGroups: [apps]
  resources: [replicasets, deployments]
  verbs: [list, watch]
{{- if .Values.estimator.load }}
- apiGroups: [metrics.k8s.io]
  resources: [nodes]
  verbs: [list]
{{- end }}
{{- end }}

{{- define "loadline.rules.dashboard" -}}
{{ include "loadline.rules.cluster" . }}
- apiGroups: [ensurance.crane.io]
  resources: [podqoss]
  verbs: [list, watch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [list, watch]
{{/* The fleet, where this cluster is its hub. */ -}}
- apiGroups: [cluster.open-cluster-management.io]
  resources: [managedclusters, managedclustersets, managedclustersetbindings, placements, placementdecisions, addonplacementscores]
  verbs: [list, watch]
- apiGroups: [cluster.karmada.io]
  resources: [clusters]
  verbs: [list, watch]
- apiGroups: [work.karmada.io]
  resources: [resourcebindings, clusterresourcebindings]
  verbs: [list, watch]
{{- end }}

{{- define "loadline.rules.fleet" -}}
{{- if eq .Values.fleet.api "ocm" -}}
- apiGroups: [cluster.open-cluster-management.io]
  resources: [managedclusters, managedclustersets, managedclustersetbindings, addonplacementscores, placements]
  verbs: [list, watch]
- apiGroups: [cluster.open-cluster-management.io]
  resources: [placementdecisions]
  verbs: [list, watch, create, patch, delete]
- apiGroups: [cluster.open-cluster-management.io]
  resources: [placements/status, placementdecisions/status]
  verbs: [patch]
- apiGroups: [cluster.open-cluster-management.io]
  resources: [placements/finalizers]
  verbs: [update]
{{ include "loadline.rules.events" . }}
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- else if eq .Values.fleet.api "karmada" -}}
- apiGroups: [cluster.karmada.io]
  resources: [clusters]
  verbs: [list, watch]
- apiGroups: [work.karmada.io]
  resources: [resourcebindings, clusterresourcebindings]
  verbs: [list, watch, get, patch]
- apiGroups: [work.karmada.io]
  resources: [resourcebindings/status, clusterresourcebindings/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [services]
  verbs: [get]
{{ include "loadline.rules.events" . }}
{{- else -}}
- apiGroups: [""]
  resources: [nodes, pods]
  verbs: [list, watch]
- apiGroups: [metrics.k8s.io]
  resources: [nodes]
  verbs: [list]
{{- end }}
{{- end }}

{{/* Reading, but for the question what accounts of components that run may do, which is asked by creating it. */}}
{{- define "loadline.rules.preflight" -}}
- apiGroups: [""]
  resources: [nodes]
  verbs: [list]
- apiGroups: [apps]
  resources: [deployments, daemonsets]
  verbs: [list]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [list]
- apiGroups: [metrics.k8s.io]
  resources: [nodes]
  verbs: [list]
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [get]
{{- if .Values.preflight.upgrades }}
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- end }}
{{- end }}

{{/* Pods everywhere: marks on nodes are left where components in another namespace may have made them. */}}
{{- define "loadline.rules.cleanup" -}}
- apiGroups: [""]
  resources: [nodes]
  verbs: [list, patch]
- apiGroups: [""]
  resources: [pods]
  verbs: [list]
- apiGroups: [""]
  resources: [nodes/status]
  verbs: [patch]
{{- end }}

{{- define "loadline.rules.cleanup.namespaced" -}}
- apiGroups: [""]
  resources: [configmaps]
  verbs: [list, delete]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [list, delete]
{{- end }}
