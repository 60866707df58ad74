"""DataFrames from decoded responses, one module per subject."""
