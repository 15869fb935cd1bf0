"""What does not come with ``pip install edfa``: optional dependencies, by the extra that brings
them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from edfa.errors import MissingExtraError

MODULES = {"neural": ("torch",), "plots": ("matplotlib",)}
"""The packages that are imported under ``extra``, by the extra that brings them."""


@contextmanager
def extra(name: str, what: str) -> Iterator[None]:
    """Import optional packages inside ``with``; where they are missing, the error says which extra
    brings them.

    Any other error inside, such as that of a package which is installed and broken, stays as it is.

    Parameters
    ----------
    name
        The extra, such as ``"neural"``.
    what
        What needs it, with which the message begins.

    Raises
    ------
    MissingExtraError
        If a package of the extra is not installed.

    Examples
    --------
    >>> with extra("neural", "FTTransformer"):
    ...     raise ModuleNotFoundError("No module named 'torch'", name="torch")
    Traceback (most recent call last):
        ...
    edfa.errors.MissingExtraError: FTTransformer needs an optional dependency: pip install 'edfa[neural]'
    """  # noqa: E501
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in MODULES[name]:
            raise
        raise MissingExtraError(what, name) from None


def check_extra(name: str, what: str) -> None:
    """Raise MissingExtraError unless the extra's packages can be imported; for use before any work
    is spent.
    """
    with extra(name, what):
        for module in MODULES[name]:
            import_module(module)
