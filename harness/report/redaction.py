"""Nothing secret leaves through a report: keys and texts that look like secrets are masked once more.

Sessions hold no secrets by design (only names of environment variables); this is the second fence, and the only one
for a peer's own words, which may quote the key that it refused.
"""

from __future__ import annotations

import re
from typing import Any

MASK = "[redacted]"
_KEY = re.compile(
    r"authorization|api.?key|secret|passw|passphrase|credential|cookie|bearer|private.?key|(?:^|[_-])(?:token|auth|key)$",
    re.IGNORECASE,
)
_NAMES_ONLY = re.compile(r"_env$", re.IGNORECASE)
_TEXT = (
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}"), rf"\1 {MASK}"),
    (re.compile(r"\b(?:sk|pk|rk|ek|gsk|xai|hf)[-_][A-Za-z0-9_*.-]{8,}"), MASK),
    (re.compile(r"\bAIza[A-Za-z0-9_-]{20,}"), MASK),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_.-]{10,}"), MASK),
    (re.compile(r"(?i)([?&](?:api_?key|key|token|access_token|secret|sig|signature)=)[^&\s\"']+"), rf"\1{MASK}"),
    (re.compile(r"(://[^/\s:@]*):[^/\s@]+@"), rf"\1:{MASK}@"),
)


def redact_text(text: str) -> str:
    """`text` with bearer tokens, vendor keys, signed query parameters and URL passwords masked."""
    for pattern, mask in _TEXT:
        text = pattern.sub(mask, text)
    return text


def redact(value: Any) -> Any:
    """A copy of a JSON value in which every secret-looking key's value, and every secret-looking text, is masked.

    Keys that end in `_env` name an environment variable, which is no secret.
    """
    if isinstance(value, dict):
        return {str(key): MASK if _secret(str(key)) and inner else redact(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [redact(inner) for inner in value]
    return redact_text(value) if isinstance(value, str) else value


def _secret(key: str) -> bool:
    return bool(_KEY.search(key)) and not _NAMES_ONLY.search(key)
