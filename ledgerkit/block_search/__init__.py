"""Blocks by time: from a time or a height to a block."""
