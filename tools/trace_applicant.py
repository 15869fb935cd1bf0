"""Trace the way of one applicant through the code: which modules of edfa each stage runs, and the
hops between.

    .venv/bin/python tools/trace_applicant.py            a table
    .venv/bin/python tools/trace_applicant.py --check    and exit code 1 where a limit is passed

A module counts where one of its functions is called; importing it does not (all are imported
before). A hop is a call from a function of one module into a function of another. Limits are those
of the design: a plan 12 modules, the whole way 45.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import edfa
from edfa.advice.advisor import Advisor
from edfa.advice.interview import Interview
from edfa.data.schema import Schema
from edfa.data.table import Table

ROOT = Path(edfa.__file__).parent
PLAN, WHOLE = 12, 45
TABLE, FITTING = ("read", "encode"), "fit and certify"


class Trace:
    """The modules that run while it is on, in the order of their first call, and the hops between
    them.
    """

    def __init__(self) -> None:
        self.modules: dict[str, None] = {}
        self.hops = 0

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event != "call" or (module := _module(frame)) is None:
            return
        self.modules.setdefault(module)
        caller = frame.f_back
        while caller is not None and _module(caller) is None:
            caller = caller.f_back
        self.hops += caller is not None and _module(caller) != module


def _module(frame: FrameType) -> str | None:
    code = frame.f_code
    if code.co_name == "<module>" or not code.co_filename.startswith(str(ROOT)):
        return None
    path = Path(code.co_filename).relative_to(ROOT.parent).with_suffix("")
    return ".".join(path.parts).removesuffix(".__init__")


@contextmanager
def tracing() -> Iterator[Trace]:
    """Everything that runs inside."""
    trace = Trace()
    sys.setprofile(trace)
    try:
        yield trace
    finally:
        sys.setprofile(None)


def stages(folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What happens, in order; each is called inside a trace."""
    source = edfa.load("german")
    csv, card = folder / "people.csv", folder / "card.toml"
    source.frame.to_csv(csv, index=False)
    card.write_text(source.schema.to_toml(), encoding="utf-8")
    state: dict[str, Any] = {}

    def read() -> None:
        state["table"] = Table.from_csv(csv, Schema.from_toml(card.read_text(encoding="utf-8")))

    def encode() -> None:
        state["rows"] = state["table"].train.X, state["table"].test.X

    def fit() -> None:
        state["advisor"] = Advisor(threshold="balanced").fit(state["table"], n_jobs=1)

    def begin() -> None:
        state["interview"] = state["advisor"].interview(
            {"age": 35, "purpose": "radio/tv", "credit_amount": 2400}
        )

    def interview() -> Interview:
        return state["interview"]

    yield "read", read
    yield "encode", encode
    yield "fit and certify", fit
    yield "begin", begin
    yield "question", lambda: interview().question
    yield "answer", lambda: interview().answer(checking_status="<0").answer(duration=48)
    yield "decision", lambda: interview().decision
    yield "plans", lambda: interview().plans()
    yield "standing", lambda: interview().standing
    yield "receipt", lambda: interview().receipt().to_json()
    yield "page", lambda: interview()._repr_html_()


def main() -> int:
    """Print the table; 1 where a limit is passed and --check was given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit with 1 where a limit is passed")
    parser.add_argument("--modules", action="store_true", help="list the modules of every stage")
    arguments = parser.parse_args()
    table: dict[str, None] = {}
    fitting: dict[str, None] = {}
    applicant: dict[str, None] = {}
    counts = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, run in stages(Path(folder)):
            with tracing() as trace:
                run()
            counts[name] = len(trace.modules)
            part = table if name in TABLE else fitting if name == FITTING else applicant
            part |= {} if name == "page" else trace.modules
            print(f"{name:24} {len(trace.modules):3} modules  {trace.hops:6} hops")
            if arguments.modules:
                print("   ", " ".join(module.removeprefix("edfa.") for module in trace.modules))
    whole = table | fitting | applicant
    print(f"{'begin to receipt':24} {len(applicant):3} modules")
    print(
        f"{'table to receipt':24} {len(table | applicant):3} modules, and {len(whole)} "
        "with fitting and certifying"
    )
    return int(arguments.check and (counts["plans"] > PLAN or len(whole) > WHOLE))


if __name__ == "__main__":
    sys.exit(main())
