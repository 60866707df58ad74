"""Many accounts or blocks to a Parquet dataset: resumable, in bounded memory."""
