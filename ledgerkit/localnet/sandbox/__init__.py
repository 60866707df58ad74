"""A sandbox: a world from the genesis file of a node, by the wall clock, whose state is patched."""
