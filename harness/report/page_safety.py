"""What keeps the page safe whatever others' words hold: its policy by hash, its data as JSON that ends no script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from markupsafe import Markup

ASSETS = Path(__file__).parent / "assets"


def asset(name: str) -> Markup:
    """A script or style sheet of ours."""
    return Markup((ASSETS / name).read_text(encoding="utf-8"))  # our own files, checked by hash in the policy


def as_json(value: Any) -> Markup:
    """JSON that cannot end its script element or start another, whatever its strings hold."""
    text = msgspec.json.encode(value).decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # escaped just above


def policy(scripts: Iterable[str], styles: Iterable[str]) -> str:
    """The content security policy that allows these scripts and styles, and nothing from anywhere else."""

    def hashes(texts: Iterable[str]) -> str:
        digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts)
        return " ".join(f"'sha256-{digest}'" for digest in digests)

    return (
        f"default-src 'none'; script-src {hashes(scripts)}; style-src {hashes(styles)}; "
        "media-src file: 'self'; frame-src file: 'self'; base-uri 'none'; form-action 'none'"
    )
