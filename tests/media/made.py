"""Recordings and pictures made with the system's own tools, each with a mark in its bytes that is not in its words."""

import io
import struct
import subprocess
import wave
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont
from PIL.PngImagePlugin import PngInfo

from tests.servers.locate import CHINESE_FONT, ESPEAK, LATIN_FONT
from tests.servers.provide import need

VOICES = {"en": "en-gb", "vi": "vi", "pl": "pl", "zh-Hant": "cmn-latn-pinyin"}
# Four sentences each; the Chinese ones as they sound, which is what the voice reads.
SPOKEN = {
    "en": "I would like to book a room. We arrive on Friday at eight. My wife does not eat peanuts. Is there parking?",
    "vi": "Tôi muốn đặt phòng. Chúng tôi đến vào thứ sáu. Vợ tôi không ăn đậu phộng. Khách sạn có bãi đỗ xe không?",
    "pl": "Chciałbym zarezerwować pokój. Przyjeżdżamy w piątek o ósmej. Moja żona nie je orzechów. Czy jest parking?",
    "zh-Hant": "wo3 xiang3 ding4 fang2 jian1. wo3 men5 xing1 qi1 wu3 dao4. wo3 tai4 tai4 bu4 chi1 hua1 sheng1.",
}
DRAWN = {
    "en": "The museum is closed on Monday.\nTickets cost 12 dollars.",
    "vi": "Nhà hàng đóng cửa thứ hai.\nPhở bò giá 45 nghìn đồng.",
    "pl": "Muzeum jest zamknięte w poniedziałek.\nBilety kosztują 20 złotych.",
    "zh-Hant": "博物館星期一休館。\n門票二十元，學生免費。",
}


def spoken(folder: Path, language: str, mark: str) -> bytes:
    """A WAV file of the sentences, with the mark in a chunk of its own behind the sound."""
    path = folder / f"{language}.wav"
    command = [need(ESPEAK).place, "-v", VOICES[language], "-s", "110", "-w", str(path), SPOKEN[language]]
    subprocess.run(command, check=True, capture_output=True)
    data = path.read_bytes()
    path.unlink()
    note = mark.encode().ljust(len(mark) + len(mark) % 2, b"\0")
    data += b"LIST" + struct.pack("<I", len(note)) + note
    return data[:4] + struct.pack("<I", len(data) - 8) + data[8:]


def silence(seconds: float = 1) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(16_000)
        sound.writeframes(bytes(round(seconds * 32_000)))
    return file.getvalue()


def drawn(language: str, mark: str = "", form: str = "PNG") -> bytes:
    """The lines in black on white; with the mark beside the pixels."""
    font = ImageFont.truetype(CHINESE_FONT if language == "zh-Hant" else LATIN_FONT, 36)
    picture = Image.new("RGB", (900, 160), "white")
    ImageDraw.Draw(picture).multiline_text((20, 20), DRAWN[language], font=font, fill="black")
    file, beside = io.BytesIO(), PngInfo()
    beside.add_text("Comment", mark)
    picture.save(file, form, **({"pnginfo": beside} if form == "PNG" else {}))
    return file.getvalue()


def blank(mark: str = "") -> bytes:
    file, beside = io.BytesIO(), PngInfo()
    beside.add_text("Comment", mark)
    Image.new("RGB", (300, 200), "white").save(file, "PNG", pnginfo=beside)
    return file.getvalue()


def pieces_of(data: bytes, length: int = 24) -> list[bytes]:
    """From all over a recording or a picture, none of them so plain that it might stand anywhere."""
    starts = range(length, len(data) - length, max(1, len(data) // 40))
    found = [data[start : start + length] for start in starts]
    telling = [piece for piece in found if len(set(piece)) > length // 2]
    assert len(telling) >= 8
    return telling
