"""Which language a text is in: Vietnamese, Polish, both scripts of Chinese, English; others where they can be named."""

from threadkeep.models.language.conversation import Decision, decide, spoken_as
from threadkeep.models.language.detection import detect
from threadkeep.models.language.detectors import CountedDetector, ModelDetector, OfflineDetector, OfflineFirst
from threadkeep.models.language.requested import only_requests_a_language, requested_language
from threadkeep.models.language.tags import SUPPORTED, closest
from threadkeep.ports.language import Detection, LanguageDetector, LanguageRules

__all__ = [
    "SUPPORTED",
    "CountedDetector",
    "Decision",
    "Detection",
    "LanguageDetector",
    "LanguageRules",
    "ModelDetector",
    "OfflineDetector",
    "OfflineFirst",
    "closest",
    "decide",
    "detect",
    "only_requests_a_language",
    "requested_language",
    "spoken_as",
]
