"""Which weights an engine runs on: their hash, and whether they are random ones made for a test."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from harness.core.errors import ConfigError
from harness.engines.cache import cache_dir, write_atomic

RANDOM_MARK = "RANDOM_WEIGHTS"
"""A file of this name in a model's folder, or beside a checkpoint as `NAME.RANDOM_WEIGHTS`, says that the weights were
never trained; every result then says so too."""
_BLOCK = 1 << 20


class _Known(msgspec.Struct, frozen=True):
    size: int
    mtime_ns: int
    sha256: str


def sha256_of(paths: Iterable[Path]) -> str:
    """sha256 over the names and contents of files. One file's hash is remembered in the cache by path, size and
    modification time, since weights have gigabytes. Raises ConfigError for a file that cannot be read."""
    digest = hashlib.sha256()
    for path in sorted(paths, key=lambda path: path.name):
        digest.update(f"{path.name}={_of_file(path)};".encode())
    return digest.hexdigest()


def fingerprint(*facts: object) -> str:
    """sha256 of weights' hash, versions and decoding, in the order given."""
    return hashlib.sha256(msgspec.json.encode([str(fact) for fact in facts])).hexdigest()


def label(name: str, path: Path) -> str:
    """`name`, with `weights: random` where `path` (folder or checkpoint) is marked so."""
    mark = path / RANDOM_MARK if path.is_dir() else path.with_name(f"{path.name}.{RANDOM_MARK}")
    return f"{name}, weights: random" if mark.exists() else name


def _of_file(path: Path) -> str:
    note = cache_dir() / "hashes" / f"{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:32]}.json"
    try:
        stat = path.stat()
        try:
            known = msgspec.json.decode(note.read_bytes(), type=_Known)
            if (known.size, known.mtime_ns) == (stat.st_size, stat.st_mtime_ns):
                return known.sha256
        except (OSError, msgspec.DecodeError):
            pass
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be read ({exc.strerror or exc})") from exc
    found = _Known(size=stat.st_size, mtime_ns=stat.st_mtime_ns, sha256=digest.hexdigest())
    try:
        write_atomic(note, msgspec.json.encode(found))
    except OSError:
        return found.sha256  # a full or read-only cache costs time, not results
    return found.sha256
