"""The store of interviews, in SQLite and PostgreSQL: what was acknowledged is there, whoever writes
and dies.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

import edfa
from edfa.errors import SettingError, UnavailableError, UnreadableError
from edfa_serve.store import (
    METADATA,
    ConflictError,
    InterviewStore,
    RepeatedKeyError,
    UnknownInterviewError,
)

MARKER = "zq-sentinel-7731"

# A process that appends events one by one, and says each number once it is acknowledged.
WRITER = """
import sys
from edfa_serve.store import InterviewStore
with InterviewStore.open(sys.argv[1]) as store:
    record = store.read(sys.argv[2])
    for seq in range(record.seq, 100_000):
        sys.stdout.write(f"{store.append(record.id, seq, [('answer', {'n': seq + 1})])}\\n")
        sys.stdout.flush()
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """Where a new store goes."""
    if request.param == "sqlite":
        yield str(tmp_path / "interviews.sqlite")
        return
    url = request.getfixturevalue("postgres")
    yield url
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    METADATA.drop_all(engine)
    engine.dispose()


@pytest.fixture
def store(place):
    with InterviewStore.open(place) as opened:
        yield opened


def test_what_was_appended_is_read_in_order(store):
    token = store.begin(
        "advisor",
        [("language", {"language": "de"}), ("start", {"facts": {"wohnen": "zur Miete, „ja“"}})],
    )
    record = store.read(token)
    assert (
        store.append(record.id, 2, [("decline", {"name": "x"}), ("stop", {})], finished=True) == 4
    )
    record = store.read(token)
    assert [(e.seq, e.kind) for e in record.events] == [
        (1, "language"),
        (2, "start"),
        (3, "decline"),
        (4, "stop"),
    ]
    assert record.events[1].content == {"facts": {"wohnen": "zur Miete, „ja“"}}
    assert (record.advisor, record.finished, record.seq) == ("advisor", True, 4)


def test_a_token_is_long_random_and_stored_as_its_hash_alone(store, place):
    tokens = {store.begin("advisor") for _ in range(20)}
    assert len(tokens) == 20
    assert min(map(len, tokens)) >= 22  # 128 bits
    if not place.startswith("postgresql"):
        content = b"".join(path.read_bytes() for path in Path(place).parent.iterdir())
        assert not [token for token in tokens if token.encode() in content]


@pytest.mark.parametrize("token", ["", "x" * 22, "ü", "' OR 1=1 --", "\x00"])
def test_an_unknown_token_opens_nothing(store, token):
    store.begin("advisor")
    with pytest.raises(UnknownInterviewError, match="no such interview"):
        store.read(token)


@pytest.mark.parametrize("seq", [0, 2, 17])
def test_who_has_not_seen_the_last_event_appends_nothing(store, seq):
    token = store.begin("advisor", [("start", {})])
    record = store.read(token)
    with pytest.raises(ConflictError, match="another window"):
        store.append(record.id, seq, [("answer", {})])
    assert store.read(token).seq == 1


def test_content_that_is_no_json_is_refused_and_nothing_is_written(store):
    token = store.begin("advisor")
    record = store.read(token)
    with pytest.raises((ValueError, TypeError)):
        store.append(record.id, 0, [("answer", {"x": 1}), ("answer", {"x": float("nan")})])
    assert store.read(token).seq == 0


def append_all(place, token, count, wins):
    with InterviewStore.open(place) as store:
        record = store.read(token)
        for seq in range(count):
            try:
                store.append(record.id, seq, [("answer", {"process": os.getpid()})])
                wins.put(seq)
            except ConflictError:
                pass


def test_of_two_processes_that_write_the_same_event_one_wins(place):
    count, context = 40, multiprocessing.get_context("spawn")
    with InterviewStore.open(place) as store:
        token = store.begin("advisor")
    wins = context.Queue()
    writers = [
        context.Process(target=append_all, args=(place, token, count, wins)) for _ in range(2)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(600)
    acknowledged = [wins.get(timeout=600) for _ in range(wins.qsize())]
    with InterviewStore.open(place) as store:
        assert sorted(acknowledged) == list(range(store.read(token).seq))


def test_a_writer_that_is_killed_has_lost_nothing_that_it_acknowledged(place):
    with InterviewStore.open(place) as store:
        token = store.begin("advisor")
    for _ in range(3):
        arguments = [sys.executable, "-c", WRITER, place, token]
        path = os.environ | {"PYTHONPATH": str(Path(edfa.__file__).parents[1])}
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=path) as writer:
            lines = [writer.stdout.readline() for _ in range(30)]
            writer.send_signal(signal.SIGKILL)
            lines += writer.stdout.read().splitlines()
        acknowledged = max(int(line) for line in lines if line.strip())
        with InterviewStore.open(place) as store:
            events = store.read(token).events
        assert len(events) >= acknowledged
        assert [event.content["n"] for event in events] == list(range(1, len(events) + 1))


def test_what_was_deleted_is_in_no_byte_of_the_database(store, place):
    keep = store.begin("advisor", [("start", {"facts": {"age": 35}})])
    token = store.begin("advisor", [("start", {"facts": {"name": MARKER}})])
    record = store.read(token)
    store.append(record.id, 1, [], request=("key", b"body"))
    store.delete(record.id)
    with pytest.raises(UnknownInterviewError):
        store.read(token)
    with pytest.raises(UnknownInterviewError):
        store.append(record.id, 1, [("answer", {})])
    assert store.read(keep).seq == 1
    assert [r.id for r in store.records()] == [store.read(keep).id]
    if not place.startswith("postgresql"):
        assert not [p for p in Path(place).parent.iterdir() if MARKER.encode() in p.read_bytes()]


def test_interviews_expire_by_kind(store):
    open_one, done = store.begin("a"), store.begin("a")
    store.append(store.read(done).id, 0, [("stop", {})], finished=True)
    assert store.expire(timedelta(days=1), timedelta(days=1)) == 0
    assert store.expire(timedelta(0), timedelta(days=1)) == 1
    assert store.read(done).finished
    with pytest.raises(UnknownInterviewError):
        store.read(open_one)


def test_a_request_is_remembered_once(store):
    record = store.read(store.begin("a"))
    assert store.reply(record.id, ("one", b"{}")) is None
    store.append(record.id, 0, [("stop", {})], request=("one", b"body"))
    assert store.reply(record.id, ("one", b"body")) == 1
    with pytest.raises(RepeatedKeyError):
        store.reply(record.id, ("one", b"other"))
    with pytest.raises(ConflictError):
        store.append(record.id, 1, [("stop", {})], request=("one", b"other"))


def test_a_store_of_a_newer_version_or_another_file_is_refused(tmp_path):
    place = tmp_path / "a.sqlite"
    with (
        InterviewStore.open(place) as store,
        store.engine.execution_options(writes=True).begin() as connection,
    ):
        connection.execute(sa.text("UPDATE edfa_web SET value = '99'"))
    with pytest.raises(UnreadableError, match="has version"):
        InterviewStore.open(place)
    (tmp_path / "junk").write_bytes(b"no database" * 1000)
    with pytest.raises(UnreadableError, match="is not a database of edfa"):
        InterviewStore.open(tmp_path / "junk")
    with pytest.raises(SettingError, match="not mysql"):
        InterviewStore.open("mysql://x@y/z")
    with pytest.raises(UnavailableError):
        InterviewStore.open("postgresql://nobody@localhost:1/none")
