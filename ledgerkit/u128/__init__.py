"""The dtype u128: exact unsigned 128-bit integers for pandas."""
