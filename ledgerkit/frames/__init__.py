"""DataFrames from decoded responses, one module a subject."""
