"""A model's file is read in a process of its own before this one reads it, where the library that
reads it may crash.

That is so of ONNX, LightGBM, and boosters within skops files. ``try_in_child`` starts the other
process, which has a limit of time and of memory. Should it crash, nothing else does.
"""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pandas as pd

from edfa.errors import MissingExtraError, ModelError, UnavailableError, UnreadableError
from edfa.parallel import ONE_THREAD

MAX_SECONDS = 60
MAX_BYTES = 4 << 30  # bytes that reading and asking a model may take


def try_in_child(
    name: str,
    content: bytes,
    rows: pd.DataFrame | None = None,
    *,
    seconds: float = MAX_SECONDS,
    memory: int = MAX_BYTES,
) -> None:
    """Read a model in a process of its own, and ask it about some rows.

    Parameters
    ----------
    name, content
        The file, as ``read_model`` takes it.
    rows
        What the model is asked about; None: it is read, and not asked.
    seconds, memory
        The limits of time, and of memory in bytes where the system has one.

    Raises
    ------
    UnreadableError
        If the process crashes, takes too long or too much memory, or if the file is damaged or asks
        for a type that is not trusted.
    """
    cells = None if rows is None else rows.astype(object).where(rows.notna(), None)
    head = {
        "name": name,
        "memory": memory,
        "rows": None if cells is None else cells.to_dict("list"),
    }
    root = str(Path(__file__).resolve().parents[3])  # this edfa comes first on the path
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    try:
        child = subprocess.run(
            [sys.executable, "-P", "-W", "ignore", "-m", "edfa.predictors.user_model.trial"],
            input=json.dumps(head, default=str).encode() + b"\n" + content,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            env=os.environ | ONE_THREAD | {"PYTHONPATH": os.pathsep.join(paths)},
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
    code = child.returncode
    if code != 0 or not child.stdout:
        how = signal.Signals(-code).name if -code in set(signal.Signals) else f"exit code {code}"
        raise UnreadableError(
            f"{name} ends the process that it is tried in ({how}); it is not read"
        )
    if damage := json.loads(child.stdout):
        raise UnreadableError(damage)


def _main() -> None:
    """What the other process does: a request comes in, what is wrong goes out as a line of
    JSON.
    """
    reply = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # libraries write there too
    from edfa.predictors.user_model.files import parse_model

    line, _, content = sys.stdin.buffer.read().partition(b"\n")
    request = json.loads(line)
    name, memory = request["name"], request["memory"]
    damage = ""
    try:
        _limit(memory)
        with suppress(MissingExtraError, ModelError):  # met again in the first process
            model = parse_model(name, content)
            if request["rows"] is not None:
                model.predict_proba(pd.DataFrame(request["rows"]))
    except MemoryError:
        damage = "bad_alloc"
    except UnreadableError as error:
        damage = str(error)
    except Exception:  # noqa: S110 - what it answers is looked at where its rows are whole
        pass
    if "bad_alloc" in damage or "MemoryError" in damage:
        damage = f"{name} takes more than {memory / (1 << 30):.3g} GiB of memory; it is not read"
    os.write(reply, json.dumps(damage).encode())


def _limit(memory: int) -> None:
    """Bound what this process may take, and leave no file behind if it crashes.

    Parameters
    ----------
    memory
        Bytes that it may take beyond what it has now. Windows has no such limit.
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
