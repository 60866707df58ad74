"""The features of the protocol, by the version that brought them."""

from __future__ import annotations

from enum import Enum


class Feature(Enum):
    """
    A feature of the protocol: its name in the node, and the version that brought it.

    Source: nearcore, core/primitives-core/src/version.rs, ProtocolFeature; where the node has a
    parameter in place of a feature, core/parameters/res/runtime_configs.
    """

    def __init__(self, label: str, since: int) -> None:
        self.label, self.since = label, since

    GAS_KEYS = "GasKeys", 85  # permissions 2 and 3, actions 12 and 13, transactions V1
    DELEGATE_V2 = "DelegateV2", 85
    POST_QUANTUM_SIGNATURES = "PostQuantumSignatures", 85  # keys and signatures of ML-DSA-65
    STATE_INIT_IN_DELEGATE = "FixDelegatedDeterministicStateInit", 85
    DELETED_GLOBAL_CODE = "FixDeleteAccountGlobalContractStorageUsage", 85
    CONTRACTS_IN_METADATA = "ExecutionMetadataV4", 85
    ONE_YOCTO_ON_PROMISE = "one_yocto_on_promise", 85
    NO_DELEGATE_V2 = "RejectDelegateV2", 87  # in what is new; receipts made before still run
    NO_WITHDRAWAL_IN_DELEGATE = "RejectWithdrawFromGasKeyInDelegate", 87
    NO_EMPTY_METHOD_NAME = "RejectEmptyMethodName", 87
    STATE_INIT_LIMIT = "max_state_init_entries", 87
    ML_DSA_CHARGED_WHERE_VERIFIED = "FixMlDsaCostCharging", 87
