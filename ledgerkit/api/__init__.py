"""The documented calls of both surfaces: how each is requested, and how its response is decoded."""
