"""The methods of the node's JSON-RPC, each a function of the world and the call's params."""
