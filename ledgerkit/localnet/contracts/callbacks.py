"""Checks that callbacks of several contracts share, on the result they waited for."""

from ledgerkit.localnet.vm import Vm

ONE_RESULT = "Contract expected a result on the callback"


def succeeded(vm: Vm) -> bool:
    """Return True if the one receipt that this callback waited for succeeded."""
    if len(vm.promise_results) != 1:
        vm.panic(ONE_RESULT)
    return vm.promise_results[0] is not None


def finish_creation(vm: Vm, account_id: str, payer_id: str, amount: int) -> bool:
    """Log the result of an account creation; refund `amount` yoctoNEAR if it failed."""
    created = succeeded(vm)
    if created:
        vm.log(f"Created {account_id}")
    else:
        vm.log(f"Could not create {account_id}: {amount} yoctoNEAR go back to {payer_id}")
        if amount:
            vm.promise(payer_id).transfer(amount)
    return created
