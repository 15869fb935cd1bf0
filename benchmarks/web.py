"""One worker of the service under load: interview steps a second and their latency, memory, sizes of the first page."""

import contextlib
import http.client
import itertools
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from report import table, write

import edfa

RATE, LATENCY, GROWTH = (
    100.0,
    150.0,
    1.10,
)  # bars: steps a second, p99 in milliseconds, memory at the end over early
CLIENTS = (1, 4, 8)
SECONDS = float(os.environ.get("EDFA_WEB_SECONDS", "20"))
REQUESTS = int(os.environ.get("EDFA_WEB_REQUESTS", "50000"))
PERSON = (
    itertools.count()
)  # goes on from one measurement to the next, so that nobody comes again soon
HERE = "/api/v1/interviews/current"


class Client:
    """One connection that is kept open; it notes what each request took."""

    def __init__(self, port: int) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.taken: dict[str, list[float]] = {}
        self.requests = 0

    def send(self, method: str, path: str, body: Any = None, token: str | None = None) -> Any:
        headers = {"Content-Type": "application/json"} | (
            {"Authorization": f"Bearer {token}"} if token else {}
        )
        content = None if body is None else json.dumps(body)
        start = time.perf_counter()
        self.connection.request(method, path, content, headers)
        answer = self.connection.getresponse()
        text = answer.read()
        self.taken.setdefault(f"{method} {path}", []).append(time.perf_counter() - start)
        self.requests += 1
        assert answer.status < 300, (answer.status, text)
        return json.loads(text) if text else None

    def interview(self, person: dict[str, Any], start: tuple[str, ...], look: int = 0) -> None:
        """From the start to the last question; ``look``: how often the state is read after each step."""
        facts = {name: person[name] for name in start if name in person}
        begun = self.send("POST", "/api/v1/interviews", {"facts": facts})
        token, state = begun["token"], begun["interview"]
        while (question := state["question"]) is not None:
            name = question["feature"]
            body = {"seq": state["seq"], "facts": {name: person.get(name)}}
            state = self.send("POST", f"{HERE}/answers", body, token)
            for _ in range(look):
                self.send("GET", HERE, None, token)


@contextlib.contextmanager
def served(folder: Path) -> Iterator[tuple[int, int]]:
    """Port and process of one worker."""
    command = [
        sys.executable,
        "-m",
        "edfa",
        "serve",
        folder / "advisor",
        "--insecure",
        "--port",
        "0",
    ]
    command += ["--rate", str(10**9), "--store", folder / "interviews.sqlite"]
    paths = {"PYTHONPATH": str(Path(edfa.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [str(word) for word in command],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=os.environ | paths,
        )
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        match = re.search(r":(\d+) ", line)
        assert match is not None, line
        yield int(match[1]), server.pid
    finally:
        server.terminate()
        server.wait(30)


def load(
    port: int, process: int, people: list[Any], start: tuple[str, ...], clients: int, seconds: float
) -> list[Any]:
    """As many interviews as go into some seconds, from so many clients at a time."""
    ready = [Client(port) for _ in range(clients)]
    end = time.perf_counter() + seconds

    def work(number: int) -> None:
        while time.perf_counter() < end:
            ready[number].interview(people[next(PERSON) % len(people)], start)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
    began, used = time.perf_counter(), processor_of(process)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spent, used = time.perf_counter() - began, processor_of(process) - used
    answers = [t for client in ready for t in client.taken.get(f"POST {HERE}/answers", [])]
    begins = [t for client in ready for t in client.taken["POST /api/v1/interviews"]]
    p50, p99 = (np.percentile(answers, q) * 1e3 for q in (50, 99))
    b50, b99 = (np.percentile(begins, q) * 1e3 for q in (50, 99))
    steps = len(answers) + len(begins)
    numbers = [f"{p50:.1f}", f"{p99:.1f}", f"{b50:.1f}", f"{b99:.1f}", f"{used / steps * 1e3:.1f}"]
    return [clients, f"{steps / spent:.0f}", f"{len(answers) / spent:.0f}", *numbers]


def processor_of(process: int) -> float:
    """Seconds of processor time that a process has used."""
    parts = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


def memory_of(process: int) -> float:
    """Resident MiB."""
    match = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process}/status").read_text())
    assert match is not None
    return int(match[1]) / 1024


def measure_memory(
    port: int, process: int, people: list[Any], start: tuple[str, ...], most: int
) -> list[list[Any]]:
    """Memory after so many requests: of four, one begins or answers and the others read."""
    marks = [mark for mark in (5_000, 25_000, 50_000) if mark <= most] or [most]
    clients, rows = [Client(port) for _ in range(4)], []
    for mark in marks:

        def work(client: Client, share: int = mark // 4) -> None:
            turn = client.requests
            while client.requests < share:
                client.interview(people[turn % len(people)], start, look=4)
                turn += 1

        threads = [threading.Thread(target=work, args=(client,)) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        rows.append(
            [f"{sum(client.requests for client in clients):,}", f"{memory_of(process):.0f}"]
        )
    return rows


def measure_pages(port: int) -> list[list[Any]]:
    """Bytes of what a browser loads first, if there is a page."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def fetch(path: str) -> tuple[int, bytes]:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()

    status, text = fetch("/")
    if status != 200:
        return []
    links = re.findall(rb'(?:href|src)="(/static/[^"]+)"', text)
    rows = [["/", f"{len(text) / 1024:.1f}"]]
    rows += [
        [link.decode(), f"{len(fetch(link.decode())[1]) / 1024:.1f}"]
        for link in dict.fromkeys(links)
    ]
    return [*rows, ["together", f"{sum(float(row[1]) for row in rows):.1f}"]]


def main() -> None:
    data = edfa.load("german")
    advisor = edfa.Advisor(threshold="balanced").fit(data)
    everyone = data.encoder.decode(np.concatenate([data.test.X, data.calibration.X])).to_dict(
        "records"
    )
    people = [
        {name: value for name, value in person.items() if value is not None and value == value}
        for person in everyone
    ]
    with TemporaryDirectory() as name:
        folder = Path(name)
        advisor.save(folder / "advisor")
        with served(folder) as (port, process):
            load(port, process, people, advisor.schema.start, 2, 3.0)
            steps = [
                load(port, process, people, advisor.schema.start, clients, SECONDS)
                for clients in CLIENTS
            ]
            pages = measure_pages(port)
        with served(folder) as (port, process):
            memory = measure_memory(port, process, people, advisor.schema.start, REQUESTS)
    busy = os.getloadavg()[0]
    parts = [
        f"German credit, the default advisor decided at the base rate, one worker of `edfa serve` on SQLite with every answer flushed to disk; the clients share the machine ({os.cpu_count()} processors, load {busy:.1f} at the end).",
        "## Interview steps\n\nA step is a request that begins an interview or answers a question, answered with decision, standing, next question and plans; "
        f"{len(people)} people in turn, {SECONDS:.0f} s each. Bars: {RATE:.0f} steps a second, p99 of answers {LATENCY:.0f} ms.",
        table(
            [
                "clients",
                "steps/s",
                "answers/s",
                "answer p50, ms",
                "answer p99, ms",
                "begin p50, ms",
                "begin p99, ms",
                "processor, ms a step",
            ],
            steps,
        ),
        f"## Memory\n\nResident MiB of the worker after so many requests (a fifth or so are steps, the others read the state). Bar: at the end at most {GROWTH} times that at the first mark.",
        table(["requests", "MiB"], memory),
    ]
    if pages:
        parts += [
            "## First paint\n\nKiB, not compressed. Bar: 60 KiB in at most 3 requests.",
            table(["what", "KiB"], pages),
        ]
    write("web", "The service under load", *parts)


if __name__ == "__main__":
    main()
