"""`bertology serve` under load: time from request to answer, many clients typing, memory over many requests.

    python benchmarks/serve.py mini
    python benchmarks/serve.py path/to/model --clients 20 --seconds 60 --requests 10000

Budgets, for 20 tokens on an idle core, median from request to answer: 60 ms for `mini`, 200 ms for a model of 12 x 12
heads and width 384. Each time stands beside that of the bare forward pass of the same model, taken in the same run: on
a busy machine both are long, and their ratio is what the server adds. The time on a core is about what an idle one
would take. A client that types sends a request for every key; one that a newer key replaces is answered with 409, which
is no error.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from http.client import HTTPConnection
from pathlib import Path
from statistics import median, quantiles
from typing import Any
from urllib.parse import urlsplit

TEXT = "the old man who had opened the door of the house looked at the letters on the table again"
KEY_SECONDS = 0.15
BUDGETS = {"mini": 60.0, "gte-small": 200.0}


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
    print(f"page after {time.perf_counter() - start:.2f} s")
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
    print(f"\nlatency of {n} requests, one client; bare forward pass {forward:.1f} ms; load {os.getloadavg()[0]:.1f}")
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
    budget = next((limit for name, limit in BUDGETS.items() if model.rstrip("/").endswith(name)), None)
    if budget is not None:
        print(f"  budget on an idle core, one layer: {budget:.0f} ms")


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
        f"median {median(times):.0f} ms, p95 {quantiles(times, n=20)[-1]:.0f} ms, errors {errors or 'none'}"
    )


def memory(address: str, process_id: int, n: int) -> None:
    client = Client(address)
    print(f"\nmemory of the server over {n} requests of different lengths")
    readings: list[float] = []
    for number in range(n):
        length = 10 + 7 * number % len(TEXT)
        fields: dict[str, Any] = {"intervention": {"off": [f"1-{1 + number % 4}"]}} if number % 10 == 0 else {}
        status, _, _ = client.live(text=TEXT[: max(3, length)], **fields)
        assert status == 200
        if number % max(1, n // 10) == 0:
            readings.append(resident_megabytes(process_id))
            print(f"  {number:6d} requests  {readings[-1]:7.1f} MB")
    print(f"  growth over the last three quarters: {readings[-1] - readings[len(readings) // 4]:+.1f} MB")


def resident_megabytes(process_id: int) -> float:
    pages = int(Path(f"/proc/{process_id}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="mini")
    parser.add_argument("--repeats", type=int, default=100, help="requests of each kind for the latency")
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the clients type")
    parser.add_argument("--requests", type=int, default=2000, help="requests for the memory")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        process, address = start_server(arguments.model, home)
        try:
            latency(arguments.model, address, process.pid, arguments.repeats)
            typing(address, arguments.clients, arguments.seconds)
            memory(address, process.pid, arguments.requests)
        finally:
            process.terminate()
            process.wait(30)
            assert process.stdout is not None
            process.stdout.close()


if __name__ == "__main__":
    main()
