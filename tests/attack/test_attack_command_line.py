"""Every command with hostile arguments and files: exit code 0, 2 or 3, never 1; one line, no
traceback, no waiting.
"""

import contextlib
import io
import json
import math
import os
import resource
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from advisors import config

from edfa.cli import app
from edfa.commands.common import printable
from edfa.errors import SettingError
from edfa.reading import check_seed

HUGE = 10**30
GUARD = 600  # seconds after which a command that hangs is ended; nothing is measured
ROOM = 6 << 30  # bytes that a command may take before it counts as reading without end
MARKUP = "[/good]"


class Hanging(BaseException):
    """Not to be caught by what hangs."""


def call(*arguments):
    """Exit code and both outputs of a command, run in this process, bounded in time and memory."""
    out, error = io.StringIO(), io.StringIO()

    def stop(*_):
        raise Hanging(arguments)

    before, limits = signal.signal(signal.SIGALRM, stop), resource.getrlimit(resource.RLIMIT_AS)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + ROOM, limits[1]))
    signal.alarm(GUARD)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
            app([str(argument) for argument in arguments])
    except SystemExit as ended:
        return ended.code, out.getvalue(), error.getvalue()
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, limits)
    return 0, out.getvalue(), error.getvalue()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder of good and hostile files, in which commands are run; with an advisor and a
    receipt.
    """
    folder, random, n = tmp_path_factory.mktemp("commands"), np.random.default_rng(0), 240
    frame = pd.DataFrame(
        {"age": random.integers(18, 80, n), "inc": random.normal(50, 10, n).round(2)}
    )
    frame["job"] = random.choice(list("abc"), n)
    frame["y"] = np.where(frame["inc"] + random.normal(0, 5, n) > 50, "good", "bad")
    before = Path.cwd()
    os.chdir(folder)
    frame.to_csv("t.csv", index=False)
    frame.to_parquet("t.parquet")
    for ending in ("csv", "parquet", "json", "jsonl", "toml"):
        Path(f"empty.{ending}").write_bytes(b"")
        Path(f"junk.{ending}").write_bytes(b"\xff\xfe" + random.bytes(2000))
        Path(f"nul.{ending}").write_bytes(bytes(100))
        Path(f"deep.{ending}").write_text(("a = " if ending == "toml" else "") + "[" * 50_000)
        Path(f"folder.{ending}").mkdir()
        os.mkfifo(f"fifo.{ending}")
        Path(f"endless.{ending}").symlink_to("/dev/zero")
    Path("half.parquet").write_bytes(Path("t.parquet").read_bytes()[:900])
    Path("good.json").write_text('{"age": 30}')
    Path("nothing").mkdir()
    assert (
        call("schema", "t.csv", "--target", "y", "--favourable", "good", "--out", "card.toml")[0]
        == 0
    )
    few = ("--config", config(folder, searcher="nearest", committee=0, jobs=1), "--quiet")
    assert (
        call("fit", "t.csv", "--schema", "card.toml", "--out", "advisor", "--accept-guesses", *few)[
            0
        ]
        == 0
    )
    done = call(
        "interview", "advisor", "--json", "--answers", "good.json", "--receipt", "receipt.json"
    )
    assert done[0] == 0, done
    yield folder
    os.chdir(before)


def bad(ending):
    names = (
        "missing",
        "folder",
        "empty",
        "junk",
        "deep",
        "nul",
        "fifo",
        "endless",
        MARKUP,
        "new\nline",
        "\udcff",
    )
    return [
        *(f"{name}.{ending}" for name in names),
        "x" * 5000 + f".{ending}",
        f"zero\0byte.{ending}",
    ]


FIT = ("fit", "t.csv", "--schema", "card.toml", "--out", "other", "--accept-guesses")
INTERVIEW = ("interview", "advisor", "--json", "--answers", "good.json")
ADVISE = ("advise", "advisor", "t.csv", "--out", "out.csv")


def tables():
    for name in [*bad("csv"), *bad("parquet"), "half.parquet", "t.xlsx"]:
        yield from (
            ("schema", name, "--target", "y", "--favourable", "good"),
            ("data", name, "--schema", "card.toml"),
            ("blanket", name, "--target", "y"),
            ("fit", name, "--schema", "card.toml", "--out", "other", "--accept-guesses"),
            ("advise", "advisor", name, "--out", "out.csv", "--jobs", "1"),
            ("certify", "advisor", name, "--no-keep"),
            ("monitor", "advisor", name),
        )


def documents():
    for name in bad("json"):
        yield from (
            ("interview", "advisor", "--json", "--answers", name),
            ("interview", "advisor", "--resume", name),
            (*INTERVIEW, "--rules", name),
            ("verify", "advisor", name),
        )
    for name in bad("toml"):
        yield from (
            *([(*FIT, "--config", name)] if "empty" not in name else []),
            ("data", "t.csv", "--schema", name),
            ("fit", "t.csv", "--schema", name, "--out", "other"),
            *(
                [("interview", "advisor", "--json", "--answers", name)]
                if "empty" not in name
                else []
            ),
            ("study", "plan", name),
            ("study", "run", name, "--out", "study"),
        )
    for name in ("missing", "fifo.json", "endless.json", "empty.json", "folder.json"):
        yield ("verify", "advisor", "receipt.json", "--key", name)
    for name in bad("jsonl"):
        yield ("advise", "advisor", name, "--out", "out.csv", "--jobs", "1")
        if "empty" not in name:  # no rules are rules of nobody
            yield (*ADVISE, "--jobs", "1", "--person-rules", name)


def folders():
    for name in ("missing", "t.csv", "nothing", "fifo.json", "x" * 5000, "a\0b", MARKUP):
        yield from (
            ("interview", name, "--json", "--answers", "good.json"),
            ("advise", name, "t.csv", "--out", "out.csv"),
            ("certify", name, "t.csv"),
            ("monitor", name),
            ("verify", name, "receipt.json"),
        )


def settings():
    numbers = {
        "--seed": (-1, HUGE, 2**32, "x"),
        "--cap": (-1, 0, 1, "nan"),
        "--alpha": (-1, 0, 1, "nan", "inf"),
    }
    numbers |= {"--threshold": ("0", "nan", "x"), "--groups": (MARKUP, "", "new\nline")}
    for option, values in numbers.items():
        yield from ((*FIT, option, value) for value in values)
    in_files = {
        "delta": (-1, 0, 1, math.nan),
        "budget": (-1, 0, math.nan, "x", ""),
        "committee": (-1, 1),
        "min_survival": (-1, 2, math.nan),
        "min_need": (-1, math.nan),
        **dict.fromkeys(("blanket", "policy", "searcher", "rules"), (MARKUP, "", "new\nline")),
    }
    for i, (key, value) in enumerate((k, v) for k, values in in_files.items() for v in values):
        Path(f"settings{i}").mkdir(exist_ok=True)
        yield (*FIT, "--config", config(Path(f"settings{i}"), **{key: value}))
    for option, values in {
        "--plans": (-1, 0),
        "--chunk": (-1, 0),
        "--rules-column": ("none", MARKUP),
    }.items():
        yield from ((*ADVISE, "--jobs", "1", option, value) for value in values)
    yield from ((*ADVISE, "--jobs", value) for value in (0,))
    yield from ((*ADVISE, "--scheduler", value) for value in ("", "x", MARKUP))
    for option, values in {
        "--plans": (-1, 0),
        "--language": ("xx", MARKUP),
        "--lock": ("none", MARKUP),
    }.items():
        yield from ((*INTERVIEW, option, value) for value in values)
    yield from (
        ("certify", "advisor", "t.csv", "--no-keep", "--alpha", value) for value in (-1, 0, "nan")
    )
    yield from (("monitor", "advisor", "--delta", value) for value in (-1, 0, 1, "nan"))
    yield from (
        ("study", "run", "smoke", "--only", value) for value in ("x", "a=b", f"data={MARKUP}", "=")
    )
    yield from (
        ("study", "plan", MARKUP),
        ("study", "none"),
        ("none",),
        ("data", MARKUP),
        ("data", ""),
    )
    yield from (("schema", "t.csv", "--target", MARKUP), ("blanket", "german", "--method", MARKUP))
    yield ("schema", "t.csv", "--target", "y", "--favourable", f"{MARKUP}\n")


def outputs():
    """Places that cannot be written to. All are in the test's own folder: no device is ever a case
    here.
    """
    for name in ("fifo.csv", "t.csv/x.csv", "folder.csv", "x" * 300 + ".csv", "a\0b.csv"):
        yield from (
            ("advise", "advisor", "t.csv", "--jobs", "1", "--out", name),
            ("data", "german", "--out", name),
            ("schema", "t.csv", "--target", "y", "--favourable", "good", "--force", "--out", name),
            (*INTERVIEW, "--receipt", name),
            (*INTERVIEW, "--keep", name),
        )


@pytest.mark.long
@pytest.mark.parametrize("cases", [tables, documents, folders, settings, outputs])
def test_bad_input_is_exit_code_2(cases, place):
    import torch  # noqa: F401 - studies import it, which takes longer than a command may

    wrong = []
    for case in cases():
        try:
            code, _, error = call(*case)
        except Hanging:
            code, error = "hangs", ""
        lines = error.strip().splitlines()
        usage = (
            bool(lines) and "Usage" in lines[0]
        )  # the command line's own words for unknown options
        if (
            code != 2
            or "Traceback" in error
            or "too little memory" in error
            or not (len(lines) == 1 or usage)
        ):
            wrong.append(f"{' '.join(map(str, case))[:100]!r} -> {code}: {error.strip()[-160:]!r}")
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize("seed", [-1, 2**32, HUGE, 1.5, "1", None, True, float("nan")])
def test_what_is_no_seed_is_refused_at_once(seed):
    with pytest.raises(SettingError, match="seed: a whole number from 0 to 4294967295"):
        check_seed(seed)


@pytest.mark.parametrize("seed", [0, 2**32 - 1, np.int64(3)])
def test_seeds_stay_what_they_are(seed):
    assert check_seed(seed) == int(seed)


def test_control_characters_do_not_reach_a_terminal():
    assert printable("a\x1b[2Jb\rc\nd\udcff é") == r"a\x1b[2Jb\rc\nd\udcff é"


def start(*arguments, shell_end="", **environment):
    command = " ".join([shlex.quote(sys.executable), "-m", "edfa", *arguments]) + shell_end
    variables = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **environment}
    return subprocess.run(
        ["/bin/bash", "-c", command], capture_output=True, check=False, timeout=600, env=variables
    )


@pytest.mark.long
@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "latin-1", "COLUMNS": "20", "NO_COLOR": "1"},
        {"PYTHONIOENCODING": "utf-8"},
    ],
)
def test_every_terminal_can_be_written_to(environment, tmp_path):
    card = tmp_path / "card.toml"
    frame = pd.DataFrame({"größe_€": np.arange(60) % 7, "y": np.resize(["gut", "schön…"], 60)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    drafted = start(
        "schema", f"{tmp_path}/t.csv", "--target y --favourable gut", f"--out {card}", **environment
    )
    assert (drafted.returncode, drafted.stderr) == (0, b"")
    shown = start("data", f"{tmp_path}/t.csv", f"--schema {card}", **environment)
    assert (shown.returncode, shown.stderr) == (0, b"")
    as_json = start("data", f"{tmp_path}/t.csv", f"--schema {card} --json", **environment)
    encoding = environment.get("PYTHONIOENCODING", "ascii")
    assert json.loads(as_json.stdout.decode(encoding))["features"][0]["name"] == "größe_€"
    assert ("größe_€".encode() in as_json.stdout) == (encoding == "utf-8"), "people read it too"
    failed = start("data", f"{tmp_path}/t.csv", "--schema größe.toml", **environment)
    assert failed.returncode == 2
    assert failed.stderr.count(b"\n") == 1


def test_a_reader_that_goes_away_ends_a_command_quietly():
    done = start("data", shell_end=" | head -0; echo ${PIPESTATUS[0]}")
    assert (done.stdout, done.stderr) == (b"0\n", b"")
    done = start("data", "german", shell_end=" | head -1 >/dev/null; echo ${PIPESTATUS[0]}")
    assert (done.stdout, done.stderr) == (b"0\n", b"")


@pytest.mark.parametrize(("end", "code"), [(" >&-", 0), (" >/dev/full", 2), (" >&- 2>&-", 0)])
def test_output_that_cannot_be_written(end, code):
    done = start("data", shell_end=end)
    assert done.returncode == code
    assert b"Traceback" not in done.stderr
    assert done.stderr.count(b"\n") == (code == 2)
