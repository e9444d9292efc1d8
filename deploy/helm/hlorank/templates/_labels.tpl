{{- /* Labels that select the pods of this release. */}}
{{- define "hlorank.selector" -}}
app.kubernetes.io/name: hlorank
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* Labels of every object. */}}
{{- define "hlorank.labels" -}}
{{ include "hlorank.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- /* Renders text if the model folder is a volume. */}}
{{- define "hlorank.volume" -}}
{{- with .Values.models }}
{{- $filled := and .initContainers "initContainers" }}
{{- if gt (len (compact (list .existingClaim .image.reference ($filled | default "")))) 1 }}
{{- fail "models.existingClaim, models.image and models.initContainers exclude each other" }}
{{- end }}
{{- if and $.Values.admin.enabled (not (or .existingClaim .initContainers)) }}
{{- fail "admin.enabled needs models.existingClaim or models.initContainers: choices are stored in the model folder" }}
{{- end }}
{{- if or .existingClaim .initContainers .image.reference }}yes{{ end }}
{{- end }}
{{- end }}

{{- /* Renders text if the pod has volumes. */}}
{{- define "hlorank.volumes" -}}
{{- if and .Values.tls.clientCaSecret (not .Values.tls.existingSecret) }}
{{- fail "tls.clientCaSecret needs tls.existingSecret" }}
{{- end }}
{{- with .Values.measurements }}
{{- if and .existingSecret .existingClaim }}
{{- fail "measurements.existingSecret and measurements.existingClaim exclude each other" }}
{{- end }}
{{- if and .existingClaim (or $.Values.autoscaling.enabled (ne (int $.Values.replicas) 1)) }}
{{- fail "measurements.existingClaim needs autoscaling.enabled=false and replicas=1: each server needs a file of its own" }}
{{- end }}
{{- end }}
{{- if or (include "hlorank.volume" .) .Values.tls.existingSecret .Values.tokens.existingSecret .Values.measurements.existingClaim }}yes{{ end }}
{{- end }}
