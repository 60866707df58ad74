"""
A strict reader of the node's errors: it refuses what it does not know, as clients in Rust do.

Its models are those of near-jsonrpc-client, which are made from the specification of nearcore.
"""

from __future__ import annotations

import functools
from typing import Any

import near_jsonrpc_models as published

# The error of each method, by its name without "Rpc" and "Error".
METHODS = {
    "Block": "block gas_price",
    "StateChanges": "changes EXPERIMENTAL_changes block_effects EXPERIMENTAL_changes_in_block",
    "ProtocolConfig": "EXPERIMENTAL_protocol_config",
    "Chunk": "chunk EXPERIMENTAL_congestion_level",
    "Validator": "validators EXPERIMENTAL_validators_ordered",
    "Receipt": "EXPERIMENTAL_receipt",
    "ReceiptToTx": "EXPERIMENTAL_receipt_to_tx",
    "LightClientProof": (
        "light_client_proof EXPERIMENTAL_light_client_proof EXPERIMENTAL_light_client_block_proof"
    ),
    "LightClientNextBlock": "next_light_client_block",
    "Transaction": (
        "send_tx broadcast_tx_commit broadcast_tx_async tx tx_status EXPERIMENTAL_tx_status"
    ),
    "Query": "query",
    "ViewAccount": "EXPERIMENTAL_view_account",
    "ViewCode": "EXPERIMENTAL_view_code",
    "ViewState": "EXPERIMENTAL_view_state",
    "ViewAccessKey": "EXPERIMENTAL_view_access_key",
    "ViewAccessKeyList": "EXPERIMENTAL_view_access_key_list",
    "ViewGasKey": "EXPERIMENTAL_view_gas_key_nonces",
    "CallFunction": "EXPERIMENTAL_call_function",
}
ERRORS = {method: name for name, methods in METHODS.items() for method in methods.split()}
TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "object": (dict,),
    "array": (list,),
}


@functools.cache
def schema_of(model: str) -> dict[str, Any]:
    schema: dict[str, Any] = getattr(published, model).model_json_schema()
    return schema


def resolve(schema: dict[str, Any], definitions: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Follow a reference of a JSON schema; return the name of the model too."""
    name = ""
    while "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        schema = definitions[name]
    return name, schema


def variants(model: str) -> dict[str, set[str] | None]:
    """Return the names of the variants of a published enum, and the members of each."""
    definitions = schema_of(model).get("$defs", {})
    listed: dict[str, set[str] | None] = {}
    for alternative in schema_of(model)["anyOf"]:
        schema = resolve(alternative, definitions)[1]
        if "properties" not in schema:
            listed |= dict.fromkeys(schema.get("enum", [schema.get("const")]))
        for name, payload in schema.get("properties", {}).items():
            listed[name] = set(resolve(payload, definitions)[1].get("properties", ()))
    return listed


def read(value: Any, model: str) -> None:
    _read(value, schema_of(model), schema_of(model).get("$defs", {}))


def _read(value: Any, schema: dict[str, Any], definitions: dict[str, Any]) -> None:
    """Read a value by a schema: an object has the members of the schema, and no other."""
    name, schema = resolve(schema, definitions)
    if "anyOf" in schema:
        _read_any(value, schema["anyOf"], definitions)
    elif "const" in schema or "enum" in schema:
        assert value in schema.get("enum", [schema.get("const")]), value
    else:
        kinds = TYPES.get(schema.get("type", ""), (object,))
        assert isinstance(value, kinds), value
        assert not isinstance(value, bool) or bool in kinds, value
    if name == "NearToken":
        assert value.isdecimal(), value
    if "properties" in schema:
        members = schema["properties"]
        assert set(schema.get("required", ())) <= set(value) <= set(members), value
        for member in value:
            _read(value[member], members[member], definitions)


def _read_any(value: Any, alternatives: list[Any], definitions: dict[str, Any]) -> None:
    """Read a value by the one of several schemas that it fits."""
    for alternative in alternatives:
        try:
            _read(value, alternative, definitions)
        except AssertionError:
            continue
        return
    raise AssertionError(value)


def read_error(method: str, error: dict[str, Any]) -> str:
    """Read the member `error` of a response; return the name of its cause."""
    assert set(error) <= {"code", "message", "name", "cause", "data"}, error
    assert isinstance(error["code"], int)
    assert isinstance(error["message"], str)
    name = ERRORS.get(method, "Status")
    read({"name": error["name"], "cause": error["cause"]}, f"ErrorWrapperForRpc{name}Error")
    cause: str = error["cause"]["name"]
    if cause == "INVALID_TRANSACTION":
        assert set(error["data"]) == {"TxExecutionError"}
        read_failure(error["data"])
    return cause


def read_failure(failure: Any) -> None:
    """Read a `TxExecutionError`, by itself or as the failure of an outcome."""
    read(failure.get("TxExecutionError", failure), "TxExecutionError")
