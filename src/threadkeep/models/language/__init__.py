"""Which language a text is in: Vietnamese, Polish, both scripts of Chinese, English; others where they can be named."""

from threadkeep.models.language.conversation import (
    Decision,
    decide,
    only_requests_a_language,
    requested_language,
    spoken_as,
)
from threadkeep.models.language.detection import ModelDetector, OfflineDetector, detect
from threadkeep.models.language.tags import SUPPORTED, closest
from threadkeep.ports.models import Detection, LanguageDetector, LanguageRules

__all__ = [
    "SUPPORTED",
    "Decision",
    "Detection",
    "LanguageDetector",
    "LanguageRules",
    "ModelDetector",
    "OfflineDetector",
    "closest",
    "decide",
    "detect",
    "only_requests_a_language",
    "requested_language",
    "spoken_as",
]
