"""Deadlines that share one timer: each ends its own task, as asyncio.timeout() would."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from ledgerkit.transport.deadlines import Deadlines

if TYPE_CHECKING:
    from collections.abc import Coroutine

NOW, SOON, LATE = 0.0, 0.03, 1000.0


async def wait(deadlines: Deadlines, seconds: float, work: Coroutine[Any, Any, Any]) -> object:
    """Wait for some work until a deadline."""
    return await deadlines.limit(work, asyncio.get_running_loop().time() + seconds)


def run(*seconds: float) -> list[object]:
    """Return what tasks with these deadlines end in, of which the late ones are stopped."""

    async def work() -> list[object]:
        deadlines = Deadlines()
        tasks = [asyncio.create_task(wait(deadlines, s, asyncio.sleep(500))) for s in seconds]
        await asyncio.wait([task for task, s in zip(tasks, seconds, strict=True) if s != LATE])
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        deadlines.close()
        return [type(end) for end in ends]

    return asyncio.run(work())


@pytest.mark.parametrize(
    "seconds", [(SOON, LATE), (LATE, SOON), (NOW, LATE, SOON), (SOON, SOON / 2, LATE, NOW)]
)
def test_each_ends_its_own_task(seconds):
    """A task ends in a TimeoutError at its time, in any order; another one goes on."""
    cancelled = asyncio.CancelledError
    assert run(*seconds) == [cancelled if s == LATE else TimeoutError for s in seconds]


def test_work_in_time():
    """Work that ends in time has its value, and no later deadline ends it."""

    async def work() -> list[object]:
        deadlines = Deadlines()
        values = [await wait(deadlines, SOON, asyncio.sleep(0, n)) for n in range(3)]
        await asyncio.sleep(2 * SOON)
        with pytest.raises(TimeoutError):
            await wait(deadlines, SOON, asyncio.sleep(500))
        task = asyncio.current_task()
        return [*values, task is not None and task.cancelling()]

    assert asyncio.run(work()) == [0, 1, 2, 0]


def test_a_cancelled_task_stays_cancelled():
    """A task that is cancelled at its deadline, too, ends as cancelled."""

    async def work() -> bool:
        deadlines = Deadlines()
        task = asyncio.create_task(wait(deadlines, NOW, asyncio.sleep(500)))
        await asyncio.sleep(0)  # the task has begun
        asyncio.get_running_loop().call_later(0, task.cancel)
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(work())


def test_an_error_at_the_deadline():
    """What the work raises instead of its cancellation is raised."""

    async def fail() -> None:
        try:
            await asyncio.sleep(500)
        finally:
            raise LookupError

    async def work() -> None:
        await wait(Deadlines(), NOW, fail())

    with pytest.raises(LookupError):
        asyncio.run(work())
