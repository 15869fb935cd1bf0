"""Requests take turns: one at a time, nobody waits for one that takes long, and nothing is waited
for in a circle.
"""

import threading
import time

import pytest
from fastapi import APIRouter, FastAPI, HTTPException
from fastapi.testclient import TestClient
from pydantic import BaseModel

from edfa_serve.api import TurnRoute
from edfa_serve.turns import TURNS, Turns


def start(work, count=1):
    threads = [threading.Thread(target=work, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads


def test_one_at_a_time():
    turns, inside, most, had = Turns(longest=30), [], [], []

    def work():
        for _ in range(20):
            with turns.take() as mine:
                had.append(mine)
                inside.append(1)
                most.append(len(inside))
                time.sleep(0.0005)
                inside.pop()

    for thread in start(work, 4):
        thread.join(600)
    assert len(had) == 80
    assert all(had)
    assert max(most) == 1


def test_first_come_first_served():
    turns, order = Turns(longest=30), []

    def work(number):
        with turns.take():
            order.append(number)

    with turns.take():
        threads = []
        for number in range(6):
            threads += start(lambda number=number: work(number))
            while len(turns._waiting) <= number:
                time.sleep(0.001)
    for thread in threads:
        thread.join(600)
    assert order == list(range(6))


def test_one_that_takes_long_is_not_waited_for():
    turns, taken, done = Turns(longest=0.4), threading.Event(), threading.Event()

    def work():
        with turns.take():
            taken.set()
            done.wait(10)

    threads = start(work)
    taken.wait(30)
    for _ in range(50):  # the first waits a little, the others no more, or the thread would be gone
        with turns.take() as mine:
            assert not mine
    assert threads[0].is_alive()
    done.set()
    threads[0].join(600)
    with turns.take() as mine:
        assert mine, "what was never one's own is not given back"


def test_a_pause_is_somebody_elses_turn():
    turns, got = Turns(longest=30), []

    def work():
        with turns.take() as mine:
            got.append(mine)

    with turns.take():
        with turns.pause():
            start(work)[0].join(600)
            assert got == [True]
        threads = start(work)
        threads[0].join(0.05)
        assert got == [True], "it is one's own again"
    threads[0].join(600)
    assert got == [True, True]


def test_a_pause_of_one_who_has_no_turn_takes_none():
    turns = Turns(longest=30)
    with turns.pause():
        pass
    assert not turns.taken
    with turns.take(), turns.take():
        with turns.pause():
            assert not turns.taken, "taken twice, given back once"
        assert turns.taken
    assert not turns.taken


class Said(BaseModel):
    word: str
    number: float | None = None


@pytest.fixture
def client():
    router = APIRouter(route_class=TurnRoute)

    @router.post("/made", status_code=201)
    def made(word: str) -> Said:
        assert TURNS.taken
        return Said(word=word)

    @router.get("/refused")
    def refused() -> Said:
        raise HTTPException(418)

    @router.get("/beside")
    async def beside() -> Said:
        assert not TURNS.taken
        return Said(word="beside")

    app = FastAPI()
    app.include_router(router)
    with TestClient(app) as client:
        yield client


def test_a_route_has_its_turn_and_writes_its_model(client):
    answer = client.post("/made", params={"word": "grün"})
    assert (answer.status_code, answer.json()) == (201, {"word": "grün", "number": None})
    assert answer.headers["content-type"] == "application/json"
    assert client.post("/made").status_code == 422
    assert client.get("/beside").json()["word"] == "beside"
    schema = client.get("/openapi.json").json()["paths"]["/made"]["post"]["responses"]["201"]
    assert schema["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Said"}


def test_an_error_gives_the_turn_back(client):
    assert client.get("/refused").status_code == 418
    assert not TURNS.taken
