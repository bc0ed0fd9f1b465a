{{/* The labels by which a component's pods are found. */}}
{{- define "loadline.selector" -}}
app.kubernetes.io/name: loadline
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "loadline.chosen" -}}
{app.kubernetes.io/name: loadline, app.kubernetes.io/component: {{ .component }}}
{{- end }}

{{- define "loadline.labels" -}}
{{ include "loadline.selector" . }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{- define "loadline.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{/* What every container says first. */}}
{{- define "loadline.log" -}}
- --log-format={{ .Values.log.format }}
{{- range until (int .Values.log.verbosity) }}
- --verbose
{{- end }}
{{- end }}

{{- define "loadline.env" -}}
{{- with .Values.kubernetes.host }}
- {name: KUBERNETES_SERVICE_HOST, value: {{ . | quote }}}
{{- end }}
{{- with .Values.kubernetes.port }}
- {name: KUBERNETES_SERVICE_PORT, value: {{ int . | quote }}}
{{- end }}
{{- end }}

{{- define "loadline.election" -}}
- --leader-elect
- --leader-elect-resource-namespace={{ .Release.Namespace }}
{{- end }}

{{/* Fails, with its path and number, for a document that no component would take: dict path text kinds (of kind to apiVersion). What is in it is
     judged by the component, and by `loadline policy check` and `loadline config print`. */}}
{{- define "loadline.documents" -}}
{{- $path := .path }}
{{- $kinds := .kinds }}
{{- $found := list }}
{{- range $at, $text := regexSplit "(?m)^---(?:[ \t].*)?$" .text -1 }}
{{- $document := fromYaml $text }}
{{- $where := printf "%s: document %d" $path (len $found | add1) }}
{{- if hasKey $document "Error" }}
{{- fail (printf "%s: %s" $where $document.Error) }}
{{- end }}
{{- if $document }}
{{- $expected := keys $kinds | sortAlpha | join " or " }}
{{- if not (hasKey $kinds (toString $document.kind)) }}
{{- fail (printf "%s: kind: expected %s, found %v" $where $expected ($document.kind | default "none")) }}
{{- end }}
{{- $version := get $kinds $document.kind }}
{{- if ne (toString $document.apiVersion) $version }}
{{- fail (printf "%s: apiVersion: expected %s, found %v" $where $version ($document.apiVersion | default "none")) }}
{{- end }}
{{- if has $document.kind $found }}
{{- fail (printf "%s: kind: expected one %s, found another" $where $document.kind) }}
{{- end }}
{{- if and (hasKey $document "spec") (not (kindIs "map" $document.spec)) }}
{{- fail (printf "%s: spec: expected a mapping, found %s" $where (kindOf $document.spec)) }}
{{- end }}
{{- $found = append $found $document.kind }}
{{- end }}
{{- end }}
{{- if not $found }}
{{- fail (printf "%s: expected a document, found none" $path) }}
{{- end }}
{{- end }}

{{/* What others ask goes on answering until they have heard that it is not ready any more. */}}
{{- define "loadline.drain" -}}
- --shutdown-delay-duration=5s
{{- end }}

{{/* A component's account and what it may do: dict root component cluster (rules) namespaced (rules) in (where those are, if not here).
     Without rules it may do nothing: what it does, it does elsewhere, by a kubeconfig. */}}
{{- define "loadline.account" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: loadline-{{ .component }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "loadline.labels" . | nindent 4 }}
{{- with .cluster }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: loadline-{{ $.component }}
  labels: {{- include "loadline.labels" $ | nindent 4 }}
rules:
{{ . | trim | indent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: loadline-{{ $.component }}
  labels: {{- include "loadline.labels" $ | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: loadline-{{ $.component }}}
subjects: [{kind: ServiceAccount, name: loadline-{{ $.component }}, namespace: {{ $.root.Release.Namespace }}}]
{{- end }}
{{- with .namespaced }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: loadline-{{ $.component }}
  namespace: {{ $.in | default $.root.Release.Namespace }}
  labels: {{- include "loadline.labels" $ | nindent 4 }}
rules:
{{ . | trim | indent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: loadline-{{ $.component }}
  namespace: {{ $.in | default $.root.Release.Namespace }}
  labels: {{- include "loadline.labels" $ | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: loadline-{{ $.component }}}
subjects: [{kind: ServiceAccount, name: loadline-{{ $.component }}, namespace: {{ $.root.Release.Namespace }}}]
{{- end }}
{{- end }}

{{/* The pod of a component. Files it reads from ConfigMaps are read again as they change, and start nothing anew: dict root component values args ports probes volumes mounts env security. */}}
{{- define "loadline.pod" -}}
metadata:
  labels: {{- include "loadline.labels" . | nindent 4 }}
spec:
  serviceAccountName: loadline-{{ .component }}
  {{- with .values.priorityClassName | default (ternary .root.Values.priorityClass.name "" .root.Values.priorityClass.create) }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .root.Values.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  nodeSelector: {{- merge dict .values.nodeSelector (dict "kubernetes.io/os" "linux") | toYaml | nindent 4 }}
  {{- with .values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if ne .component "agent" }}
  affinity:
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
        - weight: 100
          podAffinityTerm:
            topologyKey: kubernetes.io/hostname
            labelSelector: {matchLabels: {{ include "loadline.chosen" . }}}
  securityContext: {runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
  {{- else }}
  securityContext: {seccompProfile: {type: RuntimeDefault}}
  {{- end }}
  containers:
    - name: {{ .component }}
      image: {{ include "loadline.image" .root }}
      imagePullPolicy: {{ .root.Values.image.pullPolicy }}
      args:
{{ .args | trim | indent 8 }}
        {{- include "loadline.log" .root | nindent 8 }}
        {{- range .values.extraArgs }}
        - {{ . | quote }}
        {{- end }}
      {{- $env := printf "%s\n%s" (include "loadline.env" .root) (.env | default "") | trim }}
      {{- with $env }}
      env:
{{ . | indent 8 }}
      {{- end }}
      {{- with .ports }}
      ports:
{{ . | trim | indent 8 }}
      {{- end }}
      {{- with .probes }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
      resources: {{- toYaml .values.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
        {{- with .security }}
        {{- . | trim | nindent 8 }}
        {{- end }}
      {{- with .mounts }}
      volumeMounts:
{{ . | trim | indent 8 }}
      {{- end }}
  {{- with .volumes }}
  volumes:
{{ . | trim | indent 4 }}
  {{- end }}
{{- end }}

{{/* A Deployment, with what stands beside it. As above, and replicas. */}}
{{- define "loadline.deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: loadline-{{ .component }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "loadline.labels" . | nindent 4 }}
spec:
  replicas: {{ .replicas }}
  selector: {matchLabels: {{ include "loadline.chosen" . }}}
  template: {{- include "loadline.pod" . | nindent 4 }}
{{- if and .root.Values.podDisruptionBudget.enabled (gt (int .replicas) 1) }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: loadline-{{ .component }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "loadline.labels" . | nindent 4 }}
spec:
  maxUnavailable: {{ .root.Values.podDisruptionBudget.maxUnavailable }}
  selector: {matchLabels: {{ include "loadline.chosen" . }}}
{{- end }}
{{ include "loadline.beside" . }}
{{- end }}

{{/* Who may ask it, where it is asked, and who collects its metrics. */}}
{{- define "loadline.beside" -}}
{{- if .root.Values.networkPolicy.enabled }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: loadline-{{ .component }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "loadline.labels" . | nindent 4 }}
spec:
  podSelector: {matchLabels: {{ include "loadline.chosen" . }}}
  policyTypes: [Ingress]
  {{- with .ports }}
  ingress:
    - ports:
        {{- range fromYamlArray . }}
        - {protocol: TCP, port: {{ .containerPort }}}
        {{- end }}
  {{- else }}
  ingress: []
  {{- end }}
{{- end }}
{{- if .ports }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ .service | default (printf "loadline-%s" .component) }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "loadline.labels" . | nindent 4 }}
spec:
  {{- if not .clusterIP }}
  clusterIP: None
  {{- end }}
  selector: {{- include "loadline.selector" . | nindent 4 }}
  ports:
    {{- range fromYamlArray .ports }}
    - {name: {{ .name }}, port: {{ .containerPort }}, targetPort: {{ .name }}}
    {{- end }}
{{- if and .root.Values.serviceMonitor.enabled (contains "name: http," .ports) }}
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  name: loadline-{{ .component }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "loadline.labels" . | nindent 4 }}
    {{- with .root.Values.serviceMonitor.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  selector: {matchLabels: {{ include "loadline.chosen" . }}}
  endpoints: [{port: http, path: /metrics, interval: {{ .root.Values.serviceMonitor.interval }}}]
{{- end }}
{{- end }}
{{- end }}

{{/* Are you there, and are you at work? Both at the port called http. */}}
{{- define "loadline.probes" -}}
readinessProbe: {httpGet: {path: /readyz, port: http}, periodSeconds: 5}
livenessProbe: {httpGet: {path: /healthz, port: http}, periodSeconds: 10, failureThreshold: 6}
{{- end }}

{{/* A Job that Helm runs, with its account: dict root component hook args retries cluster namespaced (rules). Both go when it succeeds; a Job that failed stays, with what it said. */}}
{{- define "loadline.hook" -}}
{{- $policy := "helm.sh/hook-delete-policy: \"before-hook-creation,hook-succeeded\"" }}
{{- $account := include "loadline.account" . }}
{{ $account | replace "\n  labels:" (printf "\n  annotations: {helm.sh/hook: %q, helm.sh/hook-weight: \"-1\", %s}\n  labels:" .hook $policy) }}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: loadline-{{ .component }}
  namespace: {{ .root.Release.Namespace }}
  annotations: {helm.sh/hook: {{ .hook | quote }}, {{ $policy }}}
  labels: {{- include "loadline.labels" . | nindent 4 }}
spec:
  backoffLimit: {{ .retries }}
  activeDeadlineSeconds: {{ .root.Values.hooks.activeDeadlineSeconds }}
  template:
    metadata:
      labels: {{- include "loadline.labels" . | nindent 8 }}
    spec:
      serviceAccountName: loadline-{{ .component }}
      restartPolicy: Never
      nodeSelector: {{- merge dict .root.Values.hooks.nodeSelector (dict "kubernetes.io/os" "linux") | toYaml | nindent 8 }}
      tolerations: {{- toYaml .root.Values.hooks.tolerations | nindent 8 }}
      {{- with .root.Values.imagePullSecrets }}
      imagePullSecrets: {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext: {runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
      containers:
        - name: {{ .component }}
          image: {{ include "loadline.image" .root }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          args:
{{ .args | trim | indent 12 }}
            {{- include "loadline.log" .root | nindent 12 }}
          {{- with include "loadline.env" .root | trim }}
          env: {{- . | nindent 12 }}
          {{- end }}
          resources: {requests: {cpu: 10m, memory: 32Mi}}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {drop: [ALL]}
{{- end }}

{{/* A certificate by cert-manager in this Secret: dict root component secret names (list). */}}
{{- define "loadline.certificate" -}}
{{- if .root.Values.certManager.enabled }}
{{- if not .root.Values.certManager.issuerRef.name }}
{{- fail "certManager.issuerRef.name: expected the name of an issuer" }}
{{- end }}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: {{ .secret }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "loadline.labels" . | nindent 4 }}
spec:
  secretName: {{ .secret }}
  dnsNames: {{- toYaml .names | nindent 4 }}
  issuerRef: {{- toYaml .root.Values.certManager.issuerRef | nindent 4 }}
{{- end }}
{{- end }}
