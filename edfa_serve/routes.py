"""Routes whose functions take turns."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.responses import Response

from edfa_serve.turns import TURNS

__all__ = ["JsonText", "TurnRoute"]


class JsonText(Response):
    """JSON that was written already."""

    media_type = "application/json"


class TurnRoute(APIRoute):
    """A route whose function has its turn, if it works in a thread; its model is written to JSON
    there too.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **settings: Any) -> None:
        status = settings.get("status_code") or 200
        if not inspect.iscoroutinefunction(endpoint):
            endpoint = _in_turn(inspect.unwrap(endpoint), status)
        super().__init__(path, endpoint, **settings)


def _in_turn(work: Callable[..., Any], status: int) -> Callable[..., Any]:
    @functools.wraps(work)
    def worked(*arguments: Any, **named: Any) -> Any:
        with TURNS.take():
            answer = work(*arguments, **named)
            if isinstance(answer, BaseModel):
                return JsonText(answer.model_dump_json(by_alias=True), status_code=status)
            return answer

    return worked
