"""The JSON-RPC methods of the node, each a function of the world and the request's params."""
