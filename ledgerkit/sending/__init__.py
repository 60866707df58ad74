"""Signing, broadcasting and following transactions."""
