"""Which language a text is in: Vietnamese, Polish, both scripts of Chinese, English; others where they can be named."""

from threadkeep.models.language.detection import detect
from threadkeep.models.language.detectors import CountedDetector, ModelDetector, OfflineDetector
from threadkeep.models.language.requested import only_requests_a_language, requested_language
from threadkeep.models.language.tags import closest
from threadkeep.models.language.talk import Decision, decide
from threadkeep.ports.language import Detection, LanguageDetector, LanguageRules

__all__ = [
    "CountedDetector",
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
]
