{{- /* What selects the pods of this release. */}}
{{- define "hlorank.selector" -}}
app.kubernetes.io/name: hlorank
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* What every object has. */}}
{{- define "hlorank.labels" -}}
{{ include "hlorank.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- /* Whether the model folder is a volume, not the image's. */}}
{{- define "hlorank.volume" -}}
{{- if and .Values.models.existingClaim .Values.models.initContainers }}
{{- fail "models.existingClaim and models.initContainers exclude each other" }}
{{- end }}
{{- if and .Values.admin.enabled (not (or .Values.models.existingClaim .Values.models.initContainers)) }}
{{- fail "admin.enabled needs models.existingClaim or models.initContainers: what is chosen is kept in the model folder" }}
{{- end }}
{{- if or .Values.models.existingClaim .Values.models.initContainers }}yes{{ end }}
{{- end }}

{{- /* Whether there are volumes. */}}
{{- define "hlorank.volumes" -}}
{{- if and .Values.tls.clientCaSecret (not .Values.tls.existingSecret) }}
{{- fail "tls.clientCaSecret needs tls.existingSecret" }}
{{- end }}
{{- if or (include "hlorank.volume" .) .Values.tls.existingSecret .Values.tokens.existingSecret }}yes{{ end }}
{{- end }}
