"""Make docs/screenshots anew: the applicant's page with German credit, on a desk and on a phone, in
both languages.

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
from edfa_serve.app import create_app
from edfa_serve.service import Service
from edfa_serve.settings import WebSettings
from edfa_serve.store import InterviewStore

FOLDER = Path(__file__).parents[1] / "docs" / "screenshots"
START = {"purpose": "radio/tv", "credit_amount": 2400, "age": 35}
DESK, PHONE = 960, 360
REFUSED = {"duration": 48}
ALL = REFUSED | {"checking_status": "<0"}
PICTURES: dict[
    str, tuple[str, dict[str, Any] | None, int, tuple[str, ...]]
] = {  # page, answers, width, what to open
    "start": ("/", None, DESK, ()),
    "question": ("/interview", {}, DESK, (".reason summary",)),
    "may-act": ("/result", REFUSED, DESK, ()),
    "result": (
        "/result",
        ALL,
        DESK,
        ("#compare summary", "#limits summary", ".list summary >> nth=0"),
    ),
    "no-promise": ("/result", {"duration": 12, "checking_status": "<0"}, DESK, ()),
    "receipt": ("/receipt", ALL, DESK, ()),
    "phone-question": ("/interview", {}, PHONE, ()),
    "phone-result": ("/result", ALL, PHONE, ("#compare summary",)),
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


def main() -> None:
    """Fit, serve, look."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    advisor = edfa.Advisor(threshold="balanced").fit(edfa.load("german"))
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    with (
        tempfile.TemporaryDirectory() as place,
        InterviewStore.open(Path(place) / "interviews.sqlite") as store,
        sync_playwright() as driver,
    ):
        service = Service(advisor, store)
        browser = driver.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu"]
        )
        with served(service) as address:
            for name, (path, answers, width, to_open) in PICTURES.items():
                for language in ("en", "de"):
                    token = None
                    if answers is not None:
                        token, _ = service.begin(START, language)
                        for feature, value in answers.items():
                            service.act(token, None, "answer", {"facts": {feature: value}})
                    page = open_page(browser, address, language, width, token)
                    page.goto(path)
                    for selector in to_open:
                        page.click(selector)
                    _save(page.screenshot(full_page=True), folder / f"{name}.{language}.png")
                    page.context.close()
        browser.close()


if __name__ == "__main__":
    main()
