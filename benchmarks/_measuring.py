"""How benchmarks measure: in rounds that alternate, by CPU time, and in fresh processes."""

import argparse
import gc
import multiprocessing
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


def alternate(ways: Mapping[str, Callable[[], T]], rounds: int) -> dict[str, list[T]]:
    """Run each way once a round, so that a busy moment affects all; return what they returned."""
    results: dict[str, list[T]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            results[name].append(way())
    return results


def medians(ways: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Return the median of what each way returns in rounds that alternate."""
    return {name: statistics.median(each) for name, each in alternate(ways, rounds).items()}


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the CPU seconds of all threads for some work, and for the release of its result."""
    gc.collect()
    begin = time.process_time()
    work()
    return time.process_time() - begin


def apart(work: Callable[..., T], *arguments: Any) -> T:
    """Run a function in a fresh process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


def peak_mb() -> float:
    """Return this process's peak memory."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return float("nan")


def is_small(description: str) -> bool:
    """Return True if the script shall run its small edition, which judges no time."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--small", action="store_true", help="run the small edition")
    return bool(options.parse_args().small)
