"""Collections: many accounts or blocks in Parquet files, resumable and in bounded memory."""
