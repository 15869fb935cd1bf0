"""What the tests of the page share: an advisor, an application, a client, a server and a browser's
page.
"""

import socket
import threading
from pathlib import Path

import pytest
import uvicorn
from advisors import surviving
from pages_at_work import LETTERS, START, TRIAL
from starlette.testclient import TestClient

from edfa_serve.app import create_app
from edfa_serve.service import Service
from edfa_serve.store import InterviewStore


@pytest.fixture(scope="session")
def advisor():
    return surviving()


@pytest.fixture
def store(tmp_path):
    with InterviewStore.open(tmp_path / "interviews.sqlite") as store:
        yield store


@pytest.fixture
def service(advisor, store):
    return Service(advisor, store)


@pytest.fixture
def client(service):
    return TestClient(create_app(service, TRIAL))


@pytest.fixture
def begun(client):
    """A client whose person has told the start facts."""
    assert client.post("/begin", data=START).status_code == 200
    return client


@pytest.fixture(scope="session")
def server(advisor, tmp_path_factory):
    """The address of a server on loopback, and its service."""
    store = InterviewStore.open(Path(tmp_path_factory.mktemp("served")) / "interviews.sqlite")
    service = Service(advisor, store)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = uvicorn.Config(
        create_app(service, LETTERS), port=port, log_level="error", ws="none", lifespan="off"
    )
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    while not running.started:
        thread.join(0.02)
        assert thread.is_alive()
    yield f"http://127.0.0.1:{port}", service
    running.should_exit = True
    thread.join(600)
    store.close()


@pytest.fixture
def open_page(chromium, server):
    """Opens a browser's page on the server; nothing may be fetched from elsewhere, nothing
    complain.
    """
    complaints, contexts = [], []

    def watch(page):
        expected = (
            "status of 401",
            "status of 422",
            "status of 409",
            "status of 403",
            "status of 404",
        )
        page.on(
            "console",
            lambda m: (
                m.type == "error"
                and not any(e in m.text for e in expected)
                and complaints.append(m.text)
            ),
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "request",
            lambda r: r.url.startswith(server[0]) or complaints.append(f"foreign request {r.url}"),
        )
        return page

    def opened(language="en", width=1100, **options):
        context = chromium.new_context(
            locale=language, viewport={"width": width, "height": 800}, base_url=server[0], **options
        )
        context.set_default_timeout(10_000)
        contexts.append(context)
        return watch(context.new_page())

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []
