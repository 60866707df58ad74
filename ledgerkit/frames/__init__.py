"""Decoded views to frames: pure functions, one module a subject."""
