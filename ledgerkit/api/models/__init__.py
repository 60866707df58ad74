"""JSON responses as msgspec structs, one module a surface."""
