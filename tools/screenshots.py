"""Make docs/screenshots anew: the applicant's page with German credit, and with the people of the
demo for the three endings of an interview; on a desk and on a phone, in both languages.

    python tools/screenshots.py [FOLDER]

It needs the extra ``test`` and a Chromium on the PATH.
"""

import io
import shutil
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

import edfa
from edfa.demo import run_demo
from edfa_serve.app import create_app
from edfa_serve.service import Service
from edfa_serve.settings import WebSettings
from edfa_serve.store import InterviewStore

FOLDER = Path(__file__).parents[1] / "docs" / "screenshots"
START = {"purpose": "radio/tv", "credit_amount": 2400, "age": 35}
DESK, PHONE = 960, 360
REFUSED = {"duration": 48}
PICTURES: dict[
    str, tuple[str, dict[str, Any] | str | None, int, tuple[str, ...]]
] = {  # page, answers or whose ending, width, what to open
    "start": ("/", None, DESK, ()),
    "question": ("/interview", {}, DESK, (".reason summary",)),
    "too-early": ("/result", REFUSED, DESK, ()),
    "may-act": ("/result", "act", DESK, ()),
    "granted": ("/result", "granted", DESK, ()),
    "nothing": ("/result", "nothing", DESK, ()),
    "result": (
        "/result",
        "act",
        DESK,
        ("#compare summary", "#limits summary", ".list summary >> nth=0"),
    ),
    "no-promise": ("/result", {"duration": 12, "checking_status": "<0"}, DESK, ()),
    "receipt": ("/receipt", "act", DESK, ()),
    "phone-question": ("/interview", {}, PHONE, ()),
    "phone-result": ("/result", "act", PHONE, ("#compare summary",)),
}


@contextmanager
def served(service: Service) -> Iterator[str]:
    """The address of a server on loopback."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = uvicorn.Config(
        create_app(service, WebSettings(secure=False)), port=port, log_level="error", ws="none"
    )
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    while not running.started and thread.is_alive():
        thread.join(0.05)
    yield f"http://127.0.0.1:{port}"
    running.should_exit = True
    thread.join(10)


def open_page(browser: Browser, address: str, language: str, width: int, token: str | None) -> Page:
    """A page of a browser that holds a token."""
    context = browser.new_context(
        locale=language, base_url=address, viewport={"width": width, "height": 720}
    )
    if token is not None:
        context.add_cookies([{"name": "edfa", "value": token, "url": address}])
    return context.new_page()


def _save(picture: bytes, path: Path) -> None:
    """Write a picture with few colours, which is a third of the size."""
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(48, dither=Image.Dither.NONE).save(
        path, optimize=True
    )


def _tell(service: Service, told: list[Any], language: str) -> str:
    """The token of an interview in which these facts are told, first those known from the start."""
    token, _ = service.begin(told[0], language)
    for facts in told[1:]:
        for feature, value in facts.items():
            service.act(token, None, "answer", {"facts": {feature: value}})
    return token


def main() -> None:
    """Fit, serve, look."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    advisor, demo = edfa.Advisor(threshold="balanced").fit(edfa.load("german")), run_demo()
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    with (
        tempfile.TemporaryDirectory() as place,
        InterviewStore.open(Path(place) / "interviews.sqlite") as store,
        InterviewStore.open(Path(place) / "demo.sqlite") as other_store,
        sync_playwright() as driver,
    ):
        german, other = Service(advisor, store), Service(demo.advisor, other_store)
        browser = driver.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu"]
        )
        with served(german) as address, served(other) as other_address:
            for name, (path, who, width, to_open) in PICTURES.items():
                for language in ("en", "de"):
                    told = [START, who] if isinstance(who, dict) else []
                    service, at = german, address
                    if isinstance(who, str):
                        events = demo.applicants[who].interview.log.events
                        service, at, told = other, other_address, [e.facts for e in events]
                    token = _tell(service, told, language) if told else None
                    page = open_page(browser, at, language, width, token)
                    page.goto(path)
                    for selector in to_open:
                        page.click(selector)
                    _save(page.screenshot(full_page=True), folder / f"{name}.{language}.png")
                    page.context.close()
        browser.close()


if __name__ == "__main__":
    main()
