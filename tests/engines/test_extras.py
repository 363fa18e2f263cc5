"""What a missing extra says."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from harness.core.errors import PrerequisiteError
from harness.engines.asr import FasterWhisper
from harness.engines.extras import require
from harness.engines.tts import KokoroSynthesizer

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("module", "extra", "make"), [("faster_whisper", "asr", FasterWhisper), ("onnxruntime", "tts", KokoroSynthesizer)]
)
def test_missing_extra_is_one_line_that_names_it(
    module: str, extra: str, make: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(PrerequisiteError, match=rf"^{module} is not installed: pip install 'firstpacket\[{extra}\]'$"):
        make()


def test_present_module_is_given() -> None:
    assert require("json", "asr").loads("1") == 1
