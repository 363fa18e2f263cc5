"""One mixed sample run for the whole directory: writing sessions with sound takes a second or two."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core.run_directory import RunDirectory
from tests.report.sample_run import plans, write_run


@pytest.fixture(scope="session")
def mixed_run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """24 turns, one of each trouble, with `report.html` written."""
    from harness.report.html import write_report

    path: Path = tmp_path_factory.mktemp("runs") / "mixed"
    run = write_run(path, plans(24))
    write_report(run)
    return run
