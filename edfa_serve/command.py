"""``edfa serve``: the applicant's page, the operator's view and the JSON API around a saved
advisor.

``serve`` is the command; each process that serves calls ``application``.
"""

import importlib.util
import inspect
import json
import os
import re
import socket
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edfa.commands.common import Folder, load_advisor
from edfa.commands.completion import complete
from edfa.errors import MissingExtraError, SettingError

if TYPE_CHECKING:
    from fastapi import FastAPI

    from edfa_serve.settings import WebSettings

# where worker processes read how they are to serve; it names files, and holds no key
OPTIONS = "EDFA_SERVE"
LOOPBACK = ("127.0.0.1", "::1", "localhost")
UNITS = {"h": "hours", "d": "days", "w": "weeks"}


def serve(
    folder: Folder,
    store: Annotated[
        str | None,
        typer.Option(
            help=(
                "Where interviews are kept: a file, or "
                "postgresql://USER@HOST/DB; by default the file DIR.sqlite."
            )
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8000,
    key: Annotated[
        Path | None, typer.Option(help="The key file that receipts are signed with.")
    ] = None,
    operator_key: Annotated[
        Path | None,
        typer.Option(
            help="The key file that opens /operator and /metrics; without it they are closed."
        ),
    ] = None,
    letter: Annotated[
        Path | None, typer.Option(help="The operator's letter.toml; without it, no letters.")
    ] = None,
    letter_template: Annotated[
        str, typer.Option(help="The usual letter: us or eu.", autocompletion=complete("us", "eu"))
    ] = "us",
    keep: Annotated[
        str, typer.Option(help="How long unfinished interviews are kept: 12h, 30d, 8w.")
    ] = "30d",
    keep_finished: Annotated[
        str, typer.Option(help="How long finished ones are; US law: 25 months.")
    ] = "760d",
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes that serve.")] = 1,
    rate: Annotated[
        int, typer.Option(min=1, help="Requests that one client may make in a minute.")
    ] = 300,
    proxy: Annotated[
        str | None,
        typer.Option(help="The address of a proxy in front, whose X-Forwarded-For is believed."),
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="A TLS certificate, if no proxy in front has one.")
    ] = None,
    private_key: Annotated[Path | None, typer.Option(help="Its private key.")] = None,
    insecure: Annotated[
        bool, typer.Option(help="Without HTTPS, on this machine alone: for a trial.")
    ] = False,
) -> None:
    """Serve a saved advisor: the applicant's page, the operator's view and the API."""
    from edfa.parallel import ONE_THREAD

    options = {
        "folder": str(folder.resolve()),
        "store": store or f"{folder.resolve()}.sqlite",
        "key": _path(key),
        "operator_key": _path(operator_key),
        "letter": _path(letter),
        "letter_template": letter_template,
        "keep": keep,
        "keep_finished": keep_finished,
        "rate": rate,
        "insecure": insecure,
    }
    if insecure and host not in LOOPBACK:
        raise SettingError(f"--insecure serves this machine alone: --host 127.0.0.1, not {host}")
    if not insecure and certificate is None and proxy is None:
        raise SettingError(
            "answers need HTTPS: give --certificate and --private-key, or --proxy ADDRESS of one "
            "that has them; or try it on this machine with --insecure"
        )
    if any(importlib.util.find_spec(name) is None for name in ("fastapi", "uvicorn")):
        raise MissingExtraError("the service", "web")
    os.environ.update(ONE_THREAD)  # requests have a thread each already
    read_options(options)  # what is wrong is said before any process is started
    if not folder.is_dir():
        load_advisor(folder)  # which says what is wrong
    os.environ[OPTIONS] = json.dumps(options)
    _start_logging()
    _run(
        workers,
        host=host,
        port=port,
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=proxy is not None,
        forwarded_allow_ips=proxy or "",
        ssl_certfile=_path(certificate),
        ssl_keyfile=_path(private_key),
        timeout_keep_alive=15,
        limit_concurrency=500,
    )


def _run(workers: int, **settings: Any) -> None:
    """Serve until the process is ended, in this process or in several.

    Parameters
    ----------
    workers
        How many processes serve.
    settings
        Settings of ``uvicorn.Config``.
    """
    import uvicorn
    from uvicorn.supervisors import Multiprocess

    factory = "edfa_serve.command:application"
    config = uvicorn.Config(
        factory if workers > 1 else application(), factory=workers > 1, workers=workers, **settings
    )
    listening = config.bind_socket()
    # Without it a small answer waits for the client to acknowledge its headers, which takes 40 ms.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listening.listen(config.backlog)  # a reader of the line below may connect at once
    scheme, port = "https" if config.ssl_certfile else "http", listening.getsockname()[1]
    sys.stdout.write(f"edfa serves on {scheme}://{config.host}:{port} (Ctrl-C ends it)\n")
    sys.stdout.flush()
    server = uvicorn.Server(config)
    if workers == 1:
        server.run(sockets=[listening])
    else:
        takes = inspect.signature(Multiprocess).parameters  # versions differ
        target = {"target": server.run} if "target" in takes else {}
        Multiprocess(config, sockets=[listening], **target).run()


def read_options(options: dict[str, Any]) -> "tuple[WebSettings, bytes | None]":
    """Read the options that ``edfa serve`` was given.

    Parameters
    ----------
    options
        The options by name, as plain JSON; files by their paths.

    Returns
    -------
    settings : WebSettings
        How to serve.
    key : bytes or None
        The key that receipts are signed with, if any.

    Raises
    ------
    SettingError, UnreadableError
        If an option cannot be, or its file cannot be read.
    """
    from edfa.advice.receipt import read_key
    from edfa.commands.certify import MONITOR_FILE
    from edfa_serve.settings import WebSettings

    kept = {name: read_time(options[name], name) for name in ("keep", "keep_finished")}
    keys = {name: read_key(options[name]) for name in ("key", "operator_key") if options[name]}
    operator = keys.get("operator_key")
    settings = WebSettings(
        secure=not options["insecure"],
        operator_key=None if operator is None else operator.decode("utf-8", "replace"),
        letter=Path(options["letter"]) if options["letter"] else None,
        letter_template=options["letter_template"],
        keep_unfinished=kept["keep"],
        keep_finished=kept["keep_finished"],
        requests_a_minute=options["rate"],
        monitor=Path(options["folder"]) / MONITOR_FILE,
    )
    return settings, keys.get("key")


def application() -> "FastAPI":
    """Make the application of this process from the options that ``edfa serve`` left in the
    environment; its connections to the store are its own.
    """
    from edfa_serve.app import create_app
    from edfa_serve.service import Service
    from edfa_serve.store import InterviewStore

    _start_logging()
    options = json.loads(os.environ[OPTIONS])
    settings, key = read_options(options)
    advisor = load_advisor(Path(options["folder"]))
    return create_app(Service(advisor, InterviewStore.open(options["store"]), key), settings)


def read_time(text: str, name: str) -> timedelta:
    """Read a length of time such as ``30d``.

    Parameters
    ----------
    text
        A number of hours, days or weeks: ``12h``, ``30d``, ``8w``.
    name
        The option, which begins the message of the error.

    Raises
    ------
    SettingError
        If it is no such text.

    Examples
    --------
    >>> read_time("30d", "keep"), read_time("12h", "keep")
    (datetime.timedelta(days=30), datetime.timedelta(seconds=43200))
    """
    match = re.fullmatch(r"(\d{1,5})([hdw])", text.strip())
    if match is None:
        raise SettingError(
            f"{name}: a number of hours, days or weeks, such as 12h, 30d or 8w, not {text!r}"
        )
    return timedelta(**{UNITS[match[2]]: int(match[1])})


def _path(path: Path | None) -> str | None:
    return None if path is None else str(path.resolve())


def _start_logging() -> None:
    """The service's own lines and the server's warnings, to standard error."""
    import logging

    logging.basicConfig(
        level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
    )
    logging.getLogger("edfa_serve").setLevel(logging.INFO)
