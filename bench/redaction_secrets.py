"""Lines of code, logs and chat with made-up secrets in them, and lines with strings that only look like some."""

from __future__ import annotations

import random
import string

from bench.redaction_sets import Case

BASE62 = string.ascii_letters + string.digits
URLSAFE = BASE62 + "_-"
FORMS = {
    "aws": ("AKIA", string.ascii_uppercase + "234567", 16),
    "google": ("AIza", URLSAFE, 35),
    "github": ("ghp_", BASE62, 36),
    "gitlab": ("glpat-", URLSAFE, 20),
    "slack": ("xoxb-123456789012-", string.digits + string.ascii_letters, 24),
    "stripe": ("sk_live_", BASE62, 24),
    "openai": ("sk-proj-", URLSAFE, 48),
    "anthropic": ("sk-ant-api03-", URLSAFE, 80),
    "huggingface": ("hf_", BASE62, 34),
    "password": ("", BASE62 + "!#%^*", 12),
    "bearer": ("", URLSAFE, 40),
}
LINES = {
    "password": [
        "password={}",
        "DB_PASSWORD: {}",
        '{{"password": "{}"}}',
        "postgres://app:{}@db.internal/app",
        "my password is {}",
    ],
    "bearer": ["Authorization: Bearer {}", "curl -H 'Authorization: Bearer {}' https://api.example.com"],
    "": ["here is my key {} does it work?", 'API_KEY = "{}"', "export TOKEN={}", "{}", "use {}, thanks"],
}
INNOCENT = [
    "git checkout 3f786850e387550fdab836ed7e6dc881de23001b",
    "uuid = 123e4567-e89b-12d3-a456-426614174000",
    "the password must have 12 characters",
    "token: optional, see the docs",
    "def check_password(password): return None",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0ba822cd15d6c15b0f00a08 pulled",
    "https://example.com/docs?page=2&sort=asc",
    "import AuthenticationManagerFactoryBean",
]


def secrets(per_line: int = 8) -> list[Case]:
    rng = random.Random("secrets")
    cases = [Case(line, "en", ()) for line in INNOCENT]
    for name, (prefix, alphabet, length) in FORMS.items():
        for line in LINES.get(name, LINES[""]):
            for _ in range(per_line):
                secret = prefix + "".join(rng.choice(alphabet) for _ in range(length - 1)) + rng.choice(string.digits)
                start = line.replace("{{", "{").index("{}")
                cases.append(Case(line.format(secret), "en", ((start, start + len(secret), "SECRET"),)))
    return cases
