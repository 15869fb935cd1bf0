"""Commands of edfa, run in children of a process that is warm, which are killed at a chosen
operation on files.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import edfa

IN_PLACE = 98  # the exit code of a command that opens a file in its place for writing
LEFTOVERS = (".new", ".lock", ".old", ".parts")

SERVER = (
    f"IN_PLACE = {IN_PLACE}"
    + """
import json, os, signal, sys, time, types
import edfa, edfa.advice.batch_file, edfa.commands.tables, edfa.demo, edfa_studies.report, edfa_studies.store
import edfa.data.infer_schema, edfa_studies.products, xgboost
from edfa.cli import app

EVENTS = ("open", "os.", "shutil.", "sqlite3.connect")
german = edfa.load("german")
edfa.demo.run_demo = lambda *arguments: types.SimpleNamespace(table=german, summary=lambda: {})
edfa.demo.report, edfa.demo.story = lambda demo: "<html>" + "demo " * 9999 + "</html>", lambda demo: []

def in_place(path, place, flags):
    # Whether a file is opened for writing under the name that readers know, so that they may see
    # half of it.
    writes = flags & (os.O_WRONLY | os.O_RDWR) and not os.path.isdir(path)  # a file without a name is opened so
    return writes and not any(part.startswith(".") for part in os.path.relpath(path, place).split(os.sep))

def run(arguments, place, left, told):
    sys.stdout = sys.stderr = open(os.devnull, "w")
    operations = 0
    def count(event, values):
        nonlocal operations
        if event.startswith(EVENTS) and place in str(values[:1]):
            if operations == left:
                os.kill(os.getpid(), signal.SIGKILL)
            operations += 1
            if event == "open" and in_place(values[0], place, values[2]):
                os._exit(IN_PLACE)
    sys.addaudithook(count)
    try:
        app(arguments)
        code = 0
    except SystemExit as end:
        code = end.code or 0
    os.write(told, str(operations).encode())
    os._exit(code)

for line in sys.stdin:
    arguments, place, left = json.loads(line)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            run(arguments, place, left, writer)
        finally:
            os._exit(99)
    os.close(writer)
    operations = os.read(reader, 20).decode() or "0"
    os.close(reader)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(json.dumps([code, int(operations)]), flush=True)
"""
)


class Victims:
    """Runs commands; ``run`` returns the exit code (negative: the signal) and the number of
    operations on files.
    """

    def __enter__(self):
        settings = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(edfa.__file__).parents[1])}
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | settings,
        )
        return self

    def __exit__(self, *error):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def run(self, arguments, place, kill_at=-1):
        """Run a command; it is killed just before its ``kill_at``-th operation on a file below
        ``place``.
        """
        request = [[str(word) for word in arguments], str(place), kill_at]
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return tuple(json.loads(self.process.stdout.readline()))


def snapshot(folder):
    """Every file below a folder, by its name."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def leftovers(folder):
    """What writers have left that were killed; but for unfinished work in the cache of a study,
    which is no result.
    """
    names = (
        path.relative_to(folder)
        for path in folder.rglob(".*")
        if any(mark in path.name for mark in LEFTOVERS)
    )
    return sorted(name.as_posix() for name in names if ".unfinished" not in name.parts)
