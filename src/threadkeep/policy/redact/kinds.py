"""The types a redaction can name: the one list of them, with what each covers."""

from __future__ import annotations

from typing import Final

KINDS: Final[dict[str, str]] = {
    "EMAIL": "e-mail addresses, IDN and obfuscated (`name [at] mail [dot] com`) included",
    "PHONE": "telephone and fax numbers of any country, with their extension",
    "CREDIT_CARD": "payment card numbers: issuer prefix, length and Luhn digit agree",
    "IBAN": "international bank account numbers",
    "BANK_ACCOUNT": "domestic account and routing numbers, where a word beside them says so",
    "SSN": "US social security numbers and ITINs",
    "NATIONAL_ID": "person and tax numbers of states (PESEL, NIP, CCCD, Taiwan id, resident id, NINO, …)",
    "PASSPORT": "passport numbers, where a word beside them says so",
    "DRIVER_LICENSE": "driving licence numbers, where a word beside them says so",
    "PLATE": "vehicle registration plates",
    "DATE_OF_BIRTH": "dates that a word beside them calls a birthday",
    "ADDRESS": "street addresses, post boxes, and the town and postcode that follow them",
    "COORDINATES": "latitude and longitude precise enough to find a house",
    "IP": "IPv4 and IPv6 addresses",
    "MAC": "hardware addresses",
    "NAME": "names of people, kept unless `names` masks them: by introduction, title or label, or by a model",
    "SECRET": "passwords, tokens, API keys, private keys, authorisation headers",
    "URL": "the part of a URL that grants access: credentials, tokens, signatures",
    "CRYPTO": "wallet addresses",
    "INTERNAL_ID": "identifiers of the operator's own systems, by configured pattern",
    "LOCATION": "locations found by an optional NER model; no rule of ours makes this type",
    "ORGANIZATION": "organisations found by an optional NER model; no rule of ours makes this type",
}

STRUCTURED: Final[frozenset[str]] = frozenset(KINDS) - {"NAME", "ADDRESS", "LOCATION", "ORGANIZATION"}
"""Types with a format of their own. The others are found in free text and err more often."""
