"""JSON responses as msgspec structs, one module per surface."""
