"""`bertology serve` under load: from a key to the picture, many clients typing, memory over many requests.

    python benchmarks/serve.py                      # mini, and ../shared/models/gte-small where it is
    python benchmarks/serve.py path/to/model
    python benchmarks/serve.py --seconds 10 --requests 1000 --repeats 20

All of it in one run, each number beside its mark. From the key to the picture is measured in Chromium: from the event
of the key to the frame that shows its text, of 20 tokens; the median is to be at most 100 ms for `mini` and 300 ms for
a model of 12 x 12 heads and width 384, on an idle core. Each time of an answer stands beside that of the bare forward
pass of the same model, taken in the same run: on a busy machine both are long, and their ratio is what the server adds.
The time on a core is about what an idle one would take. A client that types sends a request for every key; one that a
newer key replaces is answered with 409, which is no error. Clients and memory are measured with the first model.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from http.client import HTTPConnection
from pathlib import Path
from statistics import median, quantiles
from typing import Any
from urllib.parse import quote, urlsplit

TEXT = "the old man who had opened the door of the house looked at the letters on the table"
KEY_SECONDS = 0.15
LARGER = Path(__file__).parents[2] / "shared" / "models" / "gte-small"
ANSWER_MARKS = {"mini": 60.0, "gte-small": 200.0}
PICTURE_MARKS = {"mini": 100.0, "gte-small": 300.0}
N_WARM_UP = 6
PAGE_MARK = 1.0
"""Seconds until the page is there."""
MEMORY_MARK = 5.0
"""Percent by which the memory may grow over the last three quarters of the requests."""
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
WATCH = """() => {
    window.pictureTimes = [];
    let pressed = 0;
    addEventListener("keydown", () => { pressed = performance.now(); }, true);
    new MutationObserver(() => {
        const text = document.querySelector(".text").value;
        const shown = document.querySelector(".picture").dataset.shown;
        if (!pressed || !shown.includes(`${text}\\\\"`)) return;
        const start = pressed;
        pressed = 0;
        requestAnimationFrame(() => {
            const channel = new MessageChannel();
            channel.port1.onmessage = () => window.pictureTimes.push(performance.now() - start);
            channel.port2.postMessage(0); // after the frame is painted
        });
    }).observe(document.querySelector(".picture"), { attributes: true, attributeFilter: ["data-shown"] });
}"""


class Client:
    """One connection to the server, with the token."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self.connection = HTTPConnection(parts.hostname or "", parts.port, timeout=120)
        self.headers = {"authorization": f"Bearer {parts.query[len('token=') :]}", "content-type": "application/json"}

    def get(self, path: str) -> Any:
        """The answer to a GET request."""
        self.connection.request("GET", path, headers=self.headers)
        return json.loads(self.connection.getresponse().read())

    def live(self, **request: Any) -> tuple[int, float, int]:
        """Status, milliseconds and bytes of an answer."""
        start = time.perf_counter()
        self.connection.request("POST", "/api/live", json.dumps(request), self.headers)
        response = self.connection.getresponse()
        size = len(response.read())
        return response.status, 1000 * (time.perf_counter() - start), size


def start_server(model: str, home: str) -> tuple[subprocess.Popen[str], str]:
    environment = {**os.environ, "BERTOLOGY_HOME": home}
    command = [sys.executable, "-m", "bertology", "serve", model, "--port", "0"]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    client = Client(address)
    client.connection.request("GET", "/", headers=client.headers)
    client.connection.getresponse().read()
    seconds = time.perf_counter() - start
    print(f"\n{model}: page after {seconds:.2f} s{beside(seconds, PAGE_MARK, ' s')}")
    while client.get("/api/state")["models"][0]["status"] != "ready":
        time.sleep(0.1)
    print(f"model after {time.perf_counter() - start:.2f} s")
    return process, address


def bare_forward(model: str, n: int) -> float:
    """Median milliseconds of a forward pass with attention, without a server."""
    import torch

    import bertology

    encoder: Any = bertology.load(model)
    batch = encoder.batch(TEXT)
    times: list[float] = []
    with torch.inference_mode():
        for _ in range(n):
            start = time.perf_counter()
            encoder.forward(batch, on_layer=ignore)
            times.append(1000 * (time.perf_counter() - start))
    return median(times)


def ignore(layer: object) -> None:
    """Do nothing with a layer."""


def cpu_milliseconds(process_id: int) -> float:
    """Time that a process has spent on a core, which other processes do not lengthen much."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def latency(model: str, address: str, process_id: int, n: int) -> None:
    client = Client(address)
    forward = bare_forward(model, n)
    load = os.getloadavg()[0]
    print(f"\nfrom the request to the answer, {n} requests, one client; bare forward {forward:.1f} ms; load {load:.1f}")
    kinds: dict[str, dict[str, Any]] = {
        "one layer": {"layers": [1]},
        "all layers": {},
        "one layer, predictions at every layer": {"layers": [1], "layer_predictions": True},
        "one layer, a head off": {"layers": [1], "intervention": {"off": ["1-1"]}},
    }
    for name, fields in kinds.items():
        client.live(text=TEXT, **fields)
        before = cpu_milliseconds(process_id)
        answers = [client.live(text=TEXT, **fields) for _ in range(n)]
        cpu = (cpu_milliseconds(process_id) - before) / n
        assert {status for status, _, _ in answers} == {200}
        times = [milliseconds for _, milliseconds, _ in answers]
        print(
            f"  {name:40s} median {median(times):6.1f} ms  p95 {quantiles(times, n=20)[-1]:6.1f} ms  "
            f"{median(times) / forward:4.1f} x forward  {cpu:5.1f} ms on a core  {answers[0][2] // 1000} kB"
        )
        if name == "one layer":
            print(f"  {'':40s} {beside(median(times), mark_of(model, ANSWER_MARKS), ' ms').strip(' ()')}")


def mark_of(model: str, marks: Mapping[str, float]) -> float | None:
    """The mark of a model; None if it has none."""
    return next((mark for name, mark in marks.items() if model.rstrip("/").endswith(name)), None)


def beside(value: float, mark: float | None, unit: str) -> str:
    """The mark and whether it is kept, to stand after a number."""
    return "" if mark is None else f" (mark {mark:g}{unit}: {'kept' if value <= mark else 'missed'})"


def key_to_picture(model: str, address: str, n: int) -> None:
    """Type into the page and print how long the picture takes."""
    from playwright.sync_api import sync_playwright

    program = next((path for name in CHROMIUM if (path := shutil.which(name))), None)
    if program is None:
        print("\nfrom the key to the picture: not measured, there is no Chromium")
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(f"{address}#text={quote(TEXT)}&head=1-1")
        page.wait_for_selector(".workbench[data-current='true'] .picture:not([data-ready=''])", timeout=120_000)
        page.evaluate(WATCH)
        page.focus(".text")
        page.keyboard.press("End")
        n_tokens = page.locator(".tokens.from button").count()
        for number in range(N_WARM_UP + n):
            page.keyboard.press("Backspace" if number % 2 else "s")
            page.wait_for_function("n => window.pictureTimes.length > n", arg=number, timeout=60_000)
            time.sleep(KEY_SECONDS)
        times = page.evaluate("window.pictureTimes")[N_WARM_UP:]
        browser.close()
    mark = beside(median(times), mark_of(model, PICTURE_MARKS), " ms")
    print(
        f"\nfrom the key to the picture, {n_tokens} tokens, {n} keys: median {median(times):.0f} ms{mark}, "
        f"p95 {quantiles(times, n=20)[-1]:.0f} ms; load {os.getloadavg()[0]:.1f}"
    )


def typing(address: str, n_clients: int, seconds: float) -> None:
    statuses: Counter[int] = Counter()
    times: list[float] = []
    lock = threading.Lock()
    end = time.monotonic() + seconds

    def type_text(number: int) -> None:
        client, sequence = Client(address), 0
        while time.monotonic() < end:
            for length in range(1, len(TEXT) + 1, 3):
                sequence += 1
                text = TEXT[:length]
                status, milliseconds, _ = client.live(text=text, layers=[1], client=f"c{number}", sequence=sequence)
                with lock:
                    statuses[status] += 1
                    times.append(milliseconds)
                if time.monotonic() >= end:
                    return
                time.sleep(KEY_SECONDS)

    threads = [threading.Thread(target=type_text, args=(number,)) for number in range(n_clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    errors = {status: count for status, count in statuses.items() if status not in {200, 409}}
    print(
        f"\n{n_clients} clients typing for {seconds:.0f} s: {statuses.total()} requests, "
        f"median {median(times):.0f} ms, p95 {quantiles(times, n=20)[-1]:.0f} ms, {statuses[409]} replaced by a newer "
        f"key, errors {errors or 'none'} (mark none: {'missed' if errors else 'kept'})"
    )


def memory(address: str, process_id: int, n: int) -> None:
    client = Client(address)
    print(f"\nmemory of the server over {n} requests of different lengths")
    readings: list[float] = []
    for number in range(n):
        status, _, _ = client.live(**request_text(number))
        assert status == 200
        if number % max(1, n // 12) == 0:
            readings.append(resident_megabytes(process_id))
            print(f"  {number:6d} requests  {readings[-1]:7.1f} MB")
    readings.append(resident_megabytes(process_id))
    print(f"  {n:6d} requests  {readings[-1]:7.1f} MB")
    growth = readings[-1] - readings[len(readings) // 4]
    percent = 100 * growth / readings[len(readings) // 4]
    print(
        f"  growth over the last three quarters: {growth:+.1f} MB, {percent:+.1f} %{beside(percent, MEMORY_MARK, ' %')}"
    )


def request_text(number: int) -> dict[str, Any]:
    """A live request: texts of different lengths, every tenth with a head switched off."""
    length = 10 + 7 * number % len(TEXT)
    intervention = {"intervention": {"off": [f"1-{1 + number % 4}"]}} if number % 10 == 0 else {}
    return {"text": TEXT[: max(3, length)], **intervention}


def resident_megabytes(process_id: int) -> float:
    pages = int(Path(f"/proc/{process_id}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["mini", *([str(LARGER)] if LARGER.exists() else [])])
    parser.add_argument("--repeats", type=int, default=100, help="requests of each kind, and keys")
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the clients type")
    parser.add_argument("--requests", type=int, default=10_000, help="requests for the memory")
    arguments = parser.parse_args()
    for model in arguments.models:
        with tempfile.TemporaryDirectory() as home:
            process, address = start_server(model, home)
            try:
                latency(model, address, process.pid, arguments.repeats)
                key_to_picture(model, address, arguments.repeats)
                if model == arguments.models[0]:
                    typing(address, arguments.clients, arguments.seconds)
                    memory(address, process.pid, arguments.requests)
            finally:
                process.terminate()
                process.wait(30)
                assert process.stdout is not None
                process.stdout.close()


if __name__ == "__main__":
    main()
