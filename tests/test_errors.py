import inspect

import pytest

from edfa import errors


def test_every_error_is_drawn_in_the_tree_and_is_the_builtin_it_says():
    classes = [
        c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, errors.EdfaError)
    ]
    assert len(classes) > 8
    for cls in classes:
        line = next(line for line in errors.__doc__.splitlines() if f" {cls.__name__}" in line)
        builtin = line.split("(")[1].split(")")[0] if "(" in line else None
        if builtin:
            assert issubclass(cls, getattr(__builtins__, builtin, None) or __builtins__[builtin])


def test_hints():
    assert errors.hint("ge", ["age", "sex"]) == "; did you mean 'age'?"
    assert errors.hint("AGE", ["age", "sex"]) == "; did you mean 'age'?"
    assert errors.hint("zzz", [str(i) for i in range(20)]).endswith("and 8 more")
    assert errors.hint("x", []) == ""
    with pytest.raises(ImportError, match=r"pip install 'edfa\[bn\]'"):
        raise errors.MissingExtraError("BayesNet", "bn")
