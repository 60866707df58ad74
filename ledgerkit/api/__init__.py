"""The documented calls of both surfaces: how each is asked and how its response is decoded."""
