"""The outcome of limits as JUnit XML, which continuous integration shows as tests.

Elements and attributes: the schema that Jenkins' xUnit plug-in reads (`testsuites`, `testsuite`, `testcase`,
`failure`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from harness.core.errors import ConfigError
from harness.report.failure import plain
from harness.report.gate import Check

SUITE = "firstpacket gate"


def junit(checks: Sequence[Check], *, peer: str, run: str) -> bytes:
    """The document, UTF-8. A limit is a test case of the class `peer`; one without a value fails as `unscored`."""
    missed = sum(not check.met for check in checks)
    counts = {"tests": str(len(checks)), "failures": str(missed), "errors": "0", "skipped": "0", "time": "0"}
    root = ElementTree.Element("testsuites", {"name": SUITE, **counts})
    suite = ElementTree.SubElement(root, "testsuite", {"name": SUITE, **counts})
    properties = ElementTree.SubElement(suite, "properties")
    ElementTree.SubElement(properties, "property", {"name": "run", "value": plain(run)})
    for check in checks:
        case = ElementTree.SubElement(
            suite, "testcase", {"classname": plain(peer), "name": str(check.limit), "time": "0"}
        )
        value = "no value" if check.value is None else f"{check.value:g}"
        said = f"{value}: {check.said}" if check.said else value
        if check.met:
            ElementTree.SubElement(case, "system-out").text = said
        else:
            kind = "unscored" if check.value is None else "limit"
            ElementTree.SubElement(case, "failure", {"message": said, "type": kind}).text = f"{check.limit}: {said}"
    ElementTree.indent(root)
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def write_junit(path: Path, document: bytes) -> None:
    """Raises ConfigError where it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(document)
    except OSError as exc:
        raise ConfigError(f"--junit {path}: cannot be written ({exc.strerror or exc})") from exc
