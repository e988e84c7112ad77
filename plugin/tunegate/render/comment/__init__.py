"""The comment on a pull request, which is the summary of a job as well."""
