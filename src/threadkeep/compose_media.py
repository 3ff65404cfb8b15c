"""Settings → who listens to recordings and looks at pictures. Nothing is loaded before the first one comes."""

from __future__ import annotations

from threadkeep.errors import InvalidSetting
from threadkeep.media import Media, MediaLimits
from threadkeep.models.language import SUPPORTED
from threadkeep.ports.media import MediaModality, MediaSummariser
from threadkeep.settings import Settings, load_settings


def media_for(settings: Settings | None = None) -> Media:
    """Whoever asks for it closes it. Raises `InvalidSetting`, and `MissingExtra` for a provider's package."""
    settings = settings or load_settings()
    made: dict[MediaModality, MediaSummariser] = {}
    choices: dict[MediaModality, tuple[str, str]] = {
        "voice": ("THREADKEEP_VOICE_MODEL", settings.voice_model),
        "image": ("THREADKEEP_IMAGE_MODEL", settings.image_model),
    }
    for modality, (setting, chosen) in choices.items():
        if chosen == "offline":
            made[modality] = _offline(modality, settings)
        elif chosen != "none":
            made[modality] = _hosted(setting, chosen, settings)
    limits = MediaLimits(settings.max_audio_bytes, settings.max_image_bytes, settings.max_image_pixels)
    return Media(made, limits)


def _offline(modality: MediaModality, settings: Settings) -> MediaSummariser:
    if modality == "voice":
        from threadkeep.models.media.voice import WhisperVoice

        return WhisperVoice(settings.languages or SUPPORTED, settings.max_audio_seconds)
    from threadkeep.models.media.text_in_image import TesseractImages

    return TesseractImages(settings.languages or SUPPORTED, settings.media_timeout_seconds, settings.max_image_pixels)


def _hosted(setting: str, chosen: str, settings: Settings) -> MediaSummariser:
    from threadkeep.models.chat.choice import ChatChoice, chat_model_for
    from threadkeep.models.chat.offline import OfflineModel
    from threadkeep.models.media.hosted import HostedMedia

    choice = ChatChoice(
        chosen,
        settings.media_timeout_seconds,
        settings.chat_retries,
        settings.chat_base_url,
        settings.ollama_host,
        settings.ollama_port,
    )
    try:
        return HostedMedia(chat_model_for(choice, OfflineModel({})), settings.max_audio_seconds)
    except InvalidSetting:
        raise InvalidSetting(setting, "names no model", "use offline, none, or a provider's: gemini:…") from None
