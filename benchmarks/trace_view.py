"""
The view of a trace of 10,000 receipts: from the decoded trace to the page.

Times the kernel's first message and the details of one receipt in CPU time, and, where
Chromium is installed, the front end from the message to the page laid out. Prints medians of
fresh rounds.
Targets: the trace opens in less than 2 s, and its first message is smaller than 1 MB.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from _verdict import finish, say
from receipts import document

from ledgerkit.tracing.trace import Trace
from ledgerkit.widgets import _view
from ledgerkit.widgets._trace_view import TraceView

RECEIPTS = 10_000
ROUNDS = 5
OPENS_S = 2.0
MEGABYTE = 10**6
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")
PAGE = """<!doctype html><meta charset="utf-8"><style>{style}</style>
<div id="host" class="ledgerkit"></div><p id="taken"></p>
<script type="application/json" id="payload">{payload}</script>
<script type="module">{module}
const payload = JSON.parse(document.getElementById("payload").textContent);
const start = performance.now();
const host = document.getElementById("host");
renderTrace(host, payload, {{ request: async () => ({{ error: "no kernel" }}), open() {{}} }});
const rows = host.querySelectorAll("[role=treeitem]").length;
host.getBoundingClientRect();  // lays everything out
const taken = performance.now() - start;
document.getElementById("taken").textContent = `${{taken}} ms, ${{rows}} rows`;
</script>"""


def kernel_seconds(trace: Trace) -> tuple[float, float, str]:
    """Time the first message of a new view and then one receipt; return the message too."""
    view = TraceView(trace)
    start = time.process_time()
    message = json.dumps(view.describe())
    described = time.process_time()
    view.handle({"do": "receipt", "at": RECEIPTS // 2})
    return described - start, time.process_time() - described, message


def browser_seconds(chromium: str, message: str) -> float:
    """Time the front end in a fresh browser."""
    page = PAGE.format(
        style=_view._read("style.css"),  # noqa: SLF001 - the package's own benchmark
        module=_view.javascript(),
        payload=message.replace("<", "\\u003c"),
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.html"
        path.write_text(page, encoding="utf-8")
        options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/user"]
        command = [chromium, *options, "--dump-dom", path.as_uri()]
        dumped = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    taken = re.search(r'id="taken">([\d.]+) ms, (\d+) rows', html.unescape(dumped))
    assert taken is not None, "the front end drew nothing"
    assert 0 < int(taken[2]) < 100
    return float(taken[1]) / 1e3


def main() -> None:
    data = document(RECEIPTS)
    kernel, details, browser, message = [], [], [], ""
    chromium = next((path for name in CHROMIUMS if (path := shutil.which(name))), None)
    for _ in range(ROUNDS):
        described, handled, message = kernel_seconds(Trace.from_json(data))
        kernel.append(described)
        details.append(handled)
        if chromium is not None:
            browser.append(browser_seconds(chromium, message))
    opens = statistics.median(kernel) + (statistics.median(browser) if browser else 0)
    print(f"{RECEIPTS:,} receipts, median of {ROUNDS} rounds")
    print(f"first message  {statistics.median(kernel):7.3f} s, {len(message) / MEGABYTE:.2f} MB")
    print(f"one receipt    {statistics.median(details):7.3f} s")
    print(f"front end      {statistics.median(browser) if browser else float('nan'):7.3f} s")
    where = "" if browser else ", in the kernel alone"
    say(f"opens in {OPENS_S:g} s{where}", f"{opens:.2f} s", met=opens < OPENS_S)
    size = len(message)
    say("a first message below 1 MB", f"{size / MEGABYTE:.2f} MB", met=size < MEGABYTE)
    finish()


if __name__ == "__main__":
    main()
