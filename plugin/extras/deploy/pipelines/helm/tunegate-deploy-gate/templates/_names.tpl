{{- define "gate.name" -}}
{{- printf "%s-tunegate" .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "gate.hook" -}}
helm.sh/hook: pre-upgrade
helm.sh/hook-delete-policy: before-hook-creation
{{- end -}}

{{- define "gate.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest -}}
{{- else -}}
{{- printf "%s:%s-%s" .repository $.Chart.AppVersion .flavor -}}
{{- end -}}
{{- end -}}
{{- end -}}
