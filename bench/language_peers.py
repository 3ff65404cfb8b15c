"""Ours and the peers as one kind of function: a text and the allowed tags to a tag. Each loads what it needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Tell = Callable[[str, Sequence[str]], str]


def ours() -> Tell:
    from threadkeep.models.language import detect

    detect("a 我", ("en", "zh"))  # the tables are read on first use
    return lambda text, allowed: detect(text, allowed).tag


def lingua() -> Tell:
    """With the four languages allowed, all models loaded at once. It has no scripts of Chinese."""
    from lingua import IsoCode639_1, LanguageDetectorBuilder

    codes = [IsoCode639_1.EN, IsoCode639_1.VI, IsoCode639_1.PL, IsoCode639_1.ZH]
    detector = LanguageDetectorBuilder.from_iso_codes_639_1(*codes).with_preloaded_language_models().build()

    def tell(text: str, allowed: Sequence[str]) -> str:
        found = detector.detect_language_of(text)
        return found.iso_code_639_1.name.lower() if found else "und"

    return tell


def pycld2() -> Tell:
    """As it comes: it knows no allowed set."""
    import pycld2 as cld2

    def tell(text: str, allowed: Sequence[str]) -> str:
        printable = "".join(char if char.isprintable() else " " for char in text)
        code: str = cld2.detect(printable, bestEffort=True)[2][0][1]
        return "zh-Hans" if code == "zh" and "zh-Hans" in allowed else code

    return tell


def py3langid() -> Tell:
    """With the four languages allowed. It has no scripts of Chinese."""
    import py3langid

    py3langid.set_languages(["en", "vi", "pl", "zh"])
    return lambda text, allowed: py3langid.classify(text)[0]


PEERS: dict[str, Callable[[], Tell]] = {
    "Threadkeep": ours,
    "lingua": lingua,
    "pycld2": pycld2,
    "py3langid": py3langid,
}
