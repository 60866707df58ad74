"""The public verbs: fetch, then frame; one module a subject."""
