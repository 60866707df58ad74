"""An exact unsigned 128-bit integer for pandas."""
