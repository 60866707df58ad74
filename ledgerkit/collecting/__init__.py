"""Many subjects to a Parquet dataset: resumable, in bounded memory, nothing lost or twice."""
