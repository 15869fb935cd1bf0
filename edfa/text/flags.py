"""What a person is told about facts that are not taken as they told them."""

from typing import TYPE_CHECKING

from edfa.text.phrases import named, number, plain, quoted, say

if TYPE_CHECKING:
    from edfa.data.encode import Flag
    from edfa.data.schema import Schema


def flag_sentence(
    flag: "Flag", schema: "Schema", language: str = "en", *, as_given: bool = False
) -> str:
    """One line about one flag, such as ``age: 80 is above 75, the highest seen; taken as 75``.

    Parameters
    ----------
    flag
        The fact, what was told and what stands for it.
    schema
        The card.
    language
        "en" or "de".
    as_given
        Whether the model itself is asked about 80, and only people like this one are looked for
        at 75.
    """
    feature = schema[flag.feature]
    name = plain(feature.said(language).label)
    if flag.kind == "left_out":
        return say("flag.left_out", language, name=name, told=quoted(flag.told, language))
    words = named(feature, flag.taken, language)
    key = f"flag.{flag.kind}_given" if as_given else f"flag.{flag.kind}"
    return say(
        key,
        language,
        name=name,
        told=plain(flag.told) if isinstance(flag.told, str) else number(float(flag.told), language),
        taken=number(float(flag.taken), language) if words is None else quoted(words, language),
    )
