"""``edfa serve`` as processes: two on one database, one that is killed, options that cannot be."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from advisors import surviving
from typer.testing import CliRunner
from web_service import HERE, OPERATOR, SIGNING, refused_person, start_facts

import edfa
from edfa.cli import cli
from edfa.errors import EdfaError
from edfa_serve.store import METADATA, InterviewStore


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A saved advisor and its keys."""
    path = tmp_path_factory.mktemp("serve")
    surviving().save(path / "advisor")
    (path / "operator.key").write_text(OPERATOR)
    (path / "signing.key").write_bytes(SIGNING)
    return path


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """Where interviews are kept."""
    if request.param == "sqlite":
        yield str(tmp_path / "interviews.sqlite")
        return
    url = request.getfixturevalue("postgres")
    yield url
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    METADATA.drop_all(engine)
    engine.dispose()


class Server:
    """A process that serves, and requests to it."""

    def __init__(self, folder, place, *options):
        words = [
            "-m",
            "edfa",
            "serve",
            folder / "advisor",
            "--store",
            place,
            "--insecure",
            "--port",
            0,
            *options,
        ]
        keys = ["--key", folder / "signing.key", "--operator-key", folder / "operator.key"]
        paths = {"PYTHONPATH": str(Path(edfa.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, *map(str, words + keys)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | paths,
        )

    def ready(self):
        line = self.process.stdout.readline()
        self.port = int(re.search(r":(\d+) ", line)[1])
        return self

    def send(self, method, path, body=None, token=None):
        """The status and the body of an answer; as long as it is still being worked out (503), a
        client waits and asks again.
        """
        for _ in range(600):
            status, content = self._send_once(method, path, body, token)
            if status != 503 or content["type"] != "urn:edfa:problem:pending":
                return status, content
            time.sleep(0.1)
        raise AssertionError("still being worked out")

    def _send_once(self, method, path, body, token):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        headers = {"Content-Type": "application/json"} | (
            {"Authorization": f"Bearer {token}"} if token else {}
        )
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        content = json.loads(answer.read() or b"null")
        connection.close()
        return answer.status, content

    def settled(self, token):
        """The state, once it has been worked out whether the person may act."""
        for _ in range(600):
            code, state = self.send("GET", HERE, None, token)
            assert code == 200, state
            if state["standing"]["status"] != "pending":
                return state
            time.sleep(0.1)
        raise AssertionError("still being worked out")

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        _, errors = self.process.communicate(timeout=600)
        return errors


@contextmanager
def running(folder, place, count):
    with ExitStack() as ended:
        servers = [Server(folder, place) for _ in range(count)]
        for server in servers:
            ended.callback(
                lambda server=server: server.process.poll() is None and server.end(signal.SIGKILL)
            )
        yield [server.ready() for server in servers]


@pytest.mark.long
def test_two_processes_serve_one_interview_and_one_may_be_killed(folder, place):
    person = refused_person()
    with running(folder, place, 2) as (first, second):
        status, begun = first.send("POST", "/api/v1/interviews", {"facts": start_facts(person)})
        assert status == 201
        token, state, turn = begun["token"], begun["interview"], 0
        while state["question"] is not None:  # one question from each in turn
            server = (second, first)[turn % 2]
            facts = {state["question"]["feature"]: person[state["question"]["feature"]]}
            body, turn = {"seq": state["seq"], "facts": facts}, turn + 1
            status, state = server.send("POST", f"{HERE}/answers", body, token)
            assert status == 200
            assert first.send("POST", f"{HERE}/answers", body, token)[0] == 409
        assert (
            first.send("GET", HERE, None, token)
            == second.send("GET", HERE, None, token)
            == (200, state)
        )

        acknowledged = []

        def hammer():
            """Take back and tell again, as long as somebody answers."""
            seq, name = state["seq"], next(iter(state["facts"].keys() - {*start_facts(person)}))
            try:
                while True:
                    for what, body in (
                        ("undo", {"feature": name}),
                        ("answers", {"facts": {name: person[name]}}),
                    ):
                        code, after = first.send(
                            "POST", f"{HERE}/{what}", {"seq": seq} | body, token
                        )
                        assert code == 200, after
                        acknowledged.append((seq + 1, what))
                        seq = after["seq"]
            except (OSError, http.client.HTTPException, ValueError):
                return

        thread = threading.Thread(target=hammer)
        thread.start()
        while len(acknowledged) < 15 and thread.is_alive():
            thread.join(0.02)
        first.end(signal.SIGKILL)
        thread.join(600)
        assert len(acknowledged) >= 15
        check_acknowledged(place, token, acknowledged)
        now = second.settled(token)
        assert now["seq"] > acknowledged[-1][0]
        with running(folder, place, 1) as (third,):
            assert third.settled(token) == now
            code, receipt = third.send("POST", f"{HERE}/receipt", {}, token)
            assert code == 200
        assert (
            second.send("POST", "/api/v1/verify", {"receipt": receipt}, OPERATOR)[1]["signature"]
            == "right"
        )
        errors = second.end()
    assert f"route={HERE}/answers status=200" in errors
    assert token not in errors
    assert "Traceback" not in errors


def check_acknowledged(place, token, acknowledged):
    """Every acknowledged event is on disk under its number."""
    with InterviewStore.open(place) as store:
        events = {event.seq: event.kind for event in store.read(token).events}
    kinds = {"undo": "undo", "answers": "answer"}
    assert [events.get(seq) for seq, _ in acknowledged] == [kinds[what] for _, what in acknowledged]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--insecure", "--host", "0.0.0.0"], "this machine alone"),  # noqa: S104
        ([], "answers need HTTPS"),
        (["--insecure", "--keep", "soon"], "keep: a number of hours, days or weeks"),
        (["--insecure", "--key", "nowhere"], "nowhere"),
    ],
)
def test_options_that_cannot_be_are_said_before_anything_is_served(folder, options, message):
    result = CliRunner().invoke(cli, ["serve", str(folder / "advisor"), *options])
    assert isinstance(result.exception, EdfaError)
    assert message in str(result.exception)


def test_a_folder_that_is_no_advisor_is_said(tmp_path):
    result = CliRunner().invoke(cli, ["serve", str(tmp_path / "nothing"), "--insecure"])
    assert isinstance(result.exception, EdfaError)
