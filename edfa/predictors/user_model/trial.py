"""A model from a file is tried in a process of its own before this one reads it.

The other process has a limit of time and of memory. It reads the file, looks at the nodes of its
trees, asks the model about rows that are known, and compares. Should it crash, nothing else does.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from edfa.errors import EdfaError, MissingExtraError, UnavailableError, UnreadableError
from edfa.predictors.user_model.ask import ENCODED, FittedModel, Kind
from edfa.predictors.user_model.check_nodes import check_nodes
from edfa.predictors.user_model.formats import read_model
from edfa.predictors.user_model.kept_rows import rows_from_json, rows_to_json
from edfa.typing import Float64Array

__all__ = ["NEAR", "SECONDS", "try_in_child"]

NEAR = 1e-6  # how far apart two answers of one model may be: threads add up in another order
SECONDS = 60
MEMORY = 4 << 30  # bytes that reading and asking a model may take
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def try_in_child(
    name: str,
    content: bytes,
    rows: pd.DataFrame | None,
    answers: Float64Array | None,
    *,
    kind: Kind = "estimator",
    columns: Sequence[str] | str = ENCODED,
    seconds: float = SECONDS,
    memory: int = MEMORY,
) -> None:
    """Read a model in a process of its own, and see that it answers ``rows`` as it did when they
    were kept.

    Parameters
    ----------
    name, content
        The file, as ``read_model`` takes it.
    rows
        What the model was asked about, as it got it; for a model of a table's X, that matrix as a
        frame. None: the model is read, and not asked.
    answers
        What it answered then, (rows, classes).
    kind, columns
        Those of the ``FittedModel`` that was kept.
    seconds, memory
        The limits of time, and of memory in bytes where the system has one.

    Raises
    ------
    UnreadableError
        If the process crashes, takes too long or too much memory, if the file is damaged or asks
        for a type that is not trusted, or if the answers are others by more than 1e-6: then it is
        another model.
    """
    request = _request(
        name, content, rows, answers, {"kind": kind, "columns": _listed(columns), "memory": memory}
    )
    command = [sys.executable, "-P", "-W", "ignore", "-m", __spec__.name if __spec__ else __name__]
    try:
        child = subprocess.run(
            command,
            input=request,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            env=_environment(),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UnreadableError(
            f"{name} was tried for {seconds:g} seconds without an answer; it is not read"
        ) from None
    except OSError as error:
        raise UnavailableError(
            f"no process can be started to try {name} in: {error.strerror}"
        ) from None
    _judge(name, child.returncode, child.stdout, memory)


def _judge(name: str, code: int, reply: bytes, memory: int) -> None:
    """Raise what a process's end and reply say."""
    if code != 0 or not reply:
        how = signal.Signals(-code).name if -code in set(signal.Signals) else f"exit code {code}"
        raise UnreadableError(
            f"{name} ends the process that it is tried in ({how}); it is not read"
        )
    outcome = json.loads(reply)
    if outcome["error"] == "MissingExtraError":
        raise MissingExtraError(f"the model {name}", "own")
    if outcome["error"] == "MemoryError":
        raise UnreadableError(
            f"{name} takes more than {memory / (1 << 30):.3g} GiB of memory; it is not read"
        )
    if outcome["error"]:
        raise UnreadableError(outcome["message"])


def _request(
    name: str,
    content: bytes,
    rows: pd.DataFrame | None,
    answers: Float64Array | None,
    more: dict[str, Any],
) -> bytes:
    """A line that says how long the parts are, the file, the rows, and the answers."""
    kept = b"" if rows is None else rows_to_json(rows)
    expected = (
        np.zeros((0, 0)) if answers is None else np.ascontiguousarray(answers, dtype=np.float64)
    )
    head = {"name": name, "sizes": [len(content), len(kept)], "shape": expected.shape, **more}
    return json.dumps(head).encode() + b"\n" + content + kept + expected.tobytes()


def _listed(columns: Sequence[str] | str) -> list[str] | str:
    return columns if isinstance(columns, str) else list(columns)


def _environment() -> dict[str, str]:
    """This process's, with this edfa first on the path and one thread."""
    root = str(Path(__file__).resolve().parents[3])
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | ONE_THREAD | {"PYTHONPATH": os.pathsep.join(paths)}


def _main() -> None:
    """What the other process does: a request comes in, a line of JSON goes out."""
    reply = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # libraries write there too
    request = sys.stdin.buffer.read()
    try:
        _try(request)
        outcome = {"error": ""}
    except MemoryError:
        outcome = {"error": "MemoryError"}
    except EdfaError as error:
        full = "bad_alloc" in str(error) or "MemoryError" in str(error)
        outcome = {"error": "MemoryError" if full else type(error).__name__, "message": str(error)}
    os.write(reply, json.dumps(outcome).encode())


def _try(request: bytes) -> None:
    """Raise UnreadableError if the model is not the one that it should be."""
    line, _, rest = request.partition(b"\n")
    head = json.loads(line)
    _limit(head["memory"])
    size, kept = head["sizes"]
    name, shape = head["name"], tuple(head["shape"])
    model = read_model(name, rest[:size], head["kind"])
    try:
        check_nodes(model)
    except UnreadableError as error:
        raise UnreadableError(f"{name} is damaged: {error}") from None
    if not kept:
        return
    rows = rows_from_json(rest[size : size + kept], "its rows")
    expected = np.frombuffer(rest[size + kept :], dtype=np.float64).reshape(shape)
    people: Any = rows.to_numpy() if isinstance(head["columns"], str) else rows[head["columns"]]
    answers = FittedModel(model, head["kind"], head["columns"], classes=tuple(range(shape[1]))).ask(
        people
    )
    apart = (
        np.abs(answers - expected).max(axis=1)
        if answers.shape == expected.shape
        else np.full(1, np.nan)
    )
    if not (apart <= NEAR).all():
        raise UnreadableError(
            f"{name} holds another model: of {len(apart)} rows it answers "
            f"{int((~(apart <= NEAR)).sum())} otherwise"
        )


def _limit(memory: int) -> None:
    """Bound what this process may take beyond what it has, and leave no file behind if it
    crashes.
    """
    try:
        import resource
    except ImportError:  # Windows
        return
    pages = 0
    with suppress(OSError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    bound = pages * resource.getpagesize() + memory
    for kind, most in ((resource.RLIMIT_AS, bound), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(kind)[1]
        with suppress(ValueError, OSError):
            resource.setrlimit(
                kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard)
            )


if __name__ == "__main__":
    _main()
