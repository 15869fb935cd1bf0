"""Which fact to ask a person next, what they can change, and when they may act.

The public names are in ``__init__.pyi`` and are loaded on first use, so that ``import edfa`` stays
cheap.
"""

from typing import Any

import lazy_loader

__version__ = "0.1.0"

_load, _, _names = lazy_loader.attach_stub(__name__, __file__)
# Folders are reached as attributes, too (edfa.plots), but are no names of their own.
_FOLDERS = (
    "acquisition advice blanket certification data errors explanation plots predictors recourse"
).split()
__all__ = [*(name for name in _names if name not in _FOLDERS), "__version__"]


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    try:
        return _load(name)
    except AttributeError:
        from edfa.errors import hint

        raise AttributeError(
            f"module 'edfa' has no attribute {name!r}{hint(name, __all__)}"
        ) from None
