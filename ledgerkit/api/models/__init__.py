"""The JSON of both surfaces as msgspec Structs, one module a surface."""
