"""Contracts that are Wasm modules: preparation, host functions, execution."""
