"""The limits of a transaction and its actions, in the current version of the protocol."""

# From the member `limit_config` of the protocol's configuration.
MAX_ACTIONS = 100
MAX_PREPAID_GAS = 10**15
MAX_DEPLOY_ACTIONS = 10
MAX_STATE_INIT_ENTRIES = 1500  # since version 87
MAX_STATE_INIT_KEYS = 1024  # universal accounts
MAX_METHOD_NAME_BYTES = 256
MAX_ARGS_BYTES = MAX_CODE_BYTES = 4 * 2**20
MAX_KEY_BYTES = 2048  # the key of a storage record
MAX_VALUE_BYTES = 4 * 2**20  # the value of a storage record
MAX_KEY_METHODS_BYTES = 2000  # the methods of an access key; each name counts one byte more
MAX_TRANSACTION_BYTES = 1_572_864
MAX_GAS_KEY_NONCES = 1024  # nearcore: AccessKeyPermission::MAX_NONCES_FOR_GAS_KEY
