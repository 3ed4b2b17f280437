{{- define "pb.name" -}}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{- end }}
{{- define "pb.labels" -}}
app.kubernetes.io/name: paretobandit-streams
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}
{{- define "pb.selector" -}}
app.kubernetes.io/name: paretobandit-streams
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: worker
{{- end }}
{{- define "pb.dashboard" -}}
app.kubernetes.io/name: paretobandit-streams
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: dashboard
{{- end }}
{{- define "pb.image" -}}
{{- if .Values.image.digest -}}{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}
{{- define "pb.container" -}}
image: {{ include "pb.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  runAsNonRoot: true
  capabilities: { drop: [ALL] }
{{- end }}
{{- define "pb.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false # its variables begin with the release's name, and PB_… would be taken for settings
serviceAccountName: {{ include "pb.name" . }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: { type: RuntimeDefault }
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- /* Settings of every process: (dict "root" $ "username" … "passwordSecret" …). */}}
{{- define "pb.env" -}}
{{- $kafka := .root.Values.kafka -}}
- { name: PB_BOOTSTRAP, value: {{ $kafka.bootstrap | quote }} }
- { name: PB_PREFIX, value: {{ $kafka.prefix | quote }} }
- { name: PB_APP_ID, value: {{ $kafka.appId | quote }} }
- { name: PB_PARTITIONS, value: {{ $kafka.partitions | quote }} }
- { name: PB_REPLICATION, value: {{ $kafka.replication | quote }} }
- { name: PB_SECURITY_PROTOCOL, value: {{ $kafka.securityProtocol | quote }} }
{{- if and .passwordSecret (hasPrefix "SASL" $kafka.securityProtocol) }}
- { name: PB_SASL_MECHANISM, value: {{ $kafka.saslMechanism | quote }} }
- { name: PB_SASL_USERNAME, value: {{ .username | quote }} }
- { name: PB_SASL_PASSWORD_FILE, value: /secrets/kafka/password }
{{- end }}
{{- if $kafka.caSecret }}
- { name: PB_SSL_CAFILE, value: /secrets/ca/ca.crt }
{{- end }}
{{- range $name, $value := .root.Values.settings }}
- { name: {{ $name }}, value: {{ $value | quote }} }
{{- end }}
{{- end }}
{{- define "pb.mounts" -}}
- { name: tmp, mountPath: /tmp }
{{- if .passwordSecret }}
- { name: kafka, mountPath: /secrets/kafka, readOnly: true }
{{- end }}
{{- if .root.Values.kafka.caSecret }}
- { name: ca, mountPath: /secrets/ca, readOnly: true }
{{- end }}
{{- end }}
{{- define "pb.volumes" -}}
- { name: tmp, emptyDir: { sizeLimit: 256Mi } }
{{- if .passwordSecret }}
- { name: kafka, secret: { secretName: {{ .passwordSecret }}, defaultMode: 0440 } }
{{- end }}
{{- if .root.Values.kafka.caSecret }}
- { name: ca, secret: { secretName: {{ .root.Values.kafka.caSecret }}, defaultMode: 0440 } }
{{- end }}
{{- end }}
{{- define "pb.probe" -}}
{{- $parts := list -}}
{{- range $name, $value := . }}{{ $parts = append $parts (printf "%s: %v" $name (int $value)) }}{{ end -}}
{{- join ", " $parts -}}
{{- end }}
