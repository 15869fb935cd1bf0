"""Files that ship with the packages."""

import pytest

from edfa.reading import RESOURCES, read_entries, read_resource


def test_a_file_is_read_once_and_read_again_once_it_was_forgotten():
    first = read_entries("edfa.text", "sentences/en.toml")
    assert read_entries("edfa.text", "sentences/en.toml") is first
    RESOURCES.forget()
    again = read_entries("edfa.text", "sentences/en.toml")
    assert again == first
    assert again is not first


def test_it_forgets_the_oldest_when_there_are_too_many():
    RESOURCES.forget()
    read_resource("edfa.data", "cards/german.toml")
    for number in range(RESOURCES.most):
        RESOURCES.get(("a test", number), lambda: None)
    assert len(RESOURCES) == RESOURCES.most
    assert ("edfa.data", "cards/german.toml") not in RESOURCES
    RESOURCES.forget()


def test_a_file_that_is_not_there_is_an_error():
    with pytest.raises(FileNotFoundError):
        read_resource("edfa.data", "cards/germany.toml")
