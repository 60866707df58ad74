"""The receipt tree of a transaction: frames, verdict, transfers and explanation."""
