"""What is installed, what is missing and how to get it, and whether this machine is fit to measure on.

Nothing heavy is imported: packages are looked up in their metadata. Values of environment variables are never read
into a finding, only whether they are set. Printing is the command's business.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from harness.core.clock import SystemClock
from harness.core.errors import HarnessError
from harness.core.plugins import CONNECTORS, SCORERS, found
from harness.engines.pinned import PINNED
from harness.engines.store import is_cached
from harness.run.machine import cpu_limit, governor, usable_cores
from harness.run.sentinel import QUIET_P99_MS, HostNoise, Sentinel

State = Literal["ok", "missing", "warn"]
PACKAGE = "firstpacket"
EXTRAS = ("mic", "local", "asr", "tts", "score", "ray")
KEY_VARIABLES = (
    "OPENAI_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "GEMINI_API_KEY",
    "DASHSCOPE_API_KEY",
    "XAI_API_KEY",
    "HF_TOKEN",
)
NOISE_S = 1.5
MINIMUM_PYTHON = (3, 11)
FREE_MB = 1024
"""A suite of 200 sessions takes a few hundred MB with both sound files."""
COARSE_NS = 1_000_000


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing looked at. remedy: the command or step that mends it, empty when nothing need be done."""

    area: Literal["python", "packages", "extras", "clock", "host", "keys", "connectors", "scorers", "disk", "models"]
    name: str
    state: State
    detail: str = ""
    remedy: str = ""


class Requirement(NamedTuple):
    """One line of the package's metadata: name, lowest version, and the extra that asks for it (empty: the core)."""

    name: str
    lowest: str
    extra: str


def examine(results: Path = Path("bench_results"), *, noise_s: float = NOISE_S) -> list[Finding]:
    """Look at everything; takes `noise_s` and a little more. results: where runs are written. Raises nothing."""
    findings = [_python()]
    requirements = declared_requirements()
    if not requirements:
        remedy = "pip install ."
        findings.append(Finding(area="packages", name=PACKAGE, state="missing", detail="no metadata", remedy=remedy))
    findings += core_packages(requirements)
    findings += extras(requirements)
    findings += _clock()
    findings += _host(noise_s)
    findings += keys(os.environ)
    findings += plugins()
    findings.append(disk(results))
    findings += _models()
    return findings


def declared_requirements() -> list[Requirement]:
    """The requirements in the installed package's metadata that apply to this system."""
    try:
        lines = metadata.requires(PACKAGE) or []
    except metadata.PackageNotFoundError:
        return []
    return parse_requirements(lines)


def parse_requirements(lines: Iterable[str]) -> list[Requirement]:
    """Read requirement lines of the shape that our own metadata has: one lower bound, an extra, one system marker."""
    parsed: list[Requirement] = []
    for line in lines:
        spec, _, marker = line.partition(";")
        if sys.platform == "win32" and re.search(r"sys_platform\s*!=\s*['\"]win32", marker):
            continue
        match = re.match(r"\s*([A-Za-z0-9._-]+)", spec)
        if match is None:
            continue
        lowest = re.search(r">=\s*([0-9][0-9.]*)", spec)
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)", marker)
        parsed.append(Requirement(match[1], lowest[1] if lowest else "", extra[1] if extra else ""))
    return parsed


def core_packages(requirements: Iterable[Requirement]) -> list[Finding]:
    """Each core dependency with its version."""
    return [_package(each) for each in requirements if not each.extra]


def extras(requirements: Iterable[Requirement]) -> list[Finding]:
    """Each extra: complete, or what it lacks."""
    requirements = list(requirements)
    findings: list[Finding] = []
    for extra in EXTRAS:
        packages = [_package(each) for each in requirements if each.extra == extra]
        if not packages:
            continue
        lacking = [f"{each.name} ({each.detail})" for each in packages if each.state != "ok"]
        have = ", ".join(f"{each.name} {each.detail}" for each in packages if each.state == "ok")
        findings.append(
            Finding(
                area="extras",
                name=extra,
                state="missing" if lacking else "ok",
                detail="lacks " + ", ".join(lacking) if lacking else have,
                remedy=f"pip install '{PACKAGE}[{extra}]'" if lacking else "",
            )
        )
    return findings


def keys(environment: Iterable[str]) -> list[Finding]:
    """Which of the usual key variables are set. A missing key matters only to its own service."""
    names = set(environment)
    return [
        Finding(area="keys", name=name, state="ok", detail="set" if name in names else "not set")
        for name in KEY_VARIABLES
    ]


def plugins() -> list[Finding]:
    """Connectors and scorers that are registered, with the distribution that brings each."""
    findings: list[Finding] = []
    groups: tuple[tuple[Literal["connectors", "scorers"], str], ...] = (
        ("connectors", CONNECTORS),
        ("scorers", SCORERS),
    )
    for area, group in groups:
        points = found(group)
        if not points:
            findings.append(Finding(area=area, name="none", state="missing", remedy="pip install ."))
        for name, point in points.items():
            brought_by = point.dist.name if point.dist else "?"
            findings.append(Finding(area=area, name=name, state="ok", detail=f"{point.value} ({brought_by})"))
    return findings


def disk(results: Path) -> Finding:
    """Space where runs are written, in the nearest folder that exists."""
    folder = results.absolute()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        free_mb = shutil.disk_usage(folder).free // (1 << 20)
    except OSError as exc:
        return Finding(area="disk", name=str(results), state="warn", detail=str(exc.strerror), remedy="choose --out")
    if not os.access(folder, os.W_OK):
        remedy = "choose another --out"
        return Finding(area="disk", name=str(results), state="missing", detail="not writable", remedy=remedy)
    state: State = "ok" if free_mb >= FREE_MB else "warn"
    remedy = "" if state == "ok" else "free some space, or choose another --out"
    return Finding(area="disk", name=str(results), state=state, detail=f"{free_mb} MB free", remedy=remedy)


def host_noise(noise: HostNoise) -> Finding:
    """The sentinel's verdict as a finding."""
    if noise.p99_ms is None:
        return Finding(area="host", name="noise", state="warn", detail=f"only {noise.n} ticks", remedy="try again")
    detail = f"wake-up p50 {noise.p50_ms:.3f}, p99 {noise.p99_ms:.3f}, max {noise.max_ms:.3f} ms over {noise.n} ticks"
    if noise.quiet:
        return Finding(area="host", name="noise", state="ok", detail=detail)
    remedy = f"close other work, or use another machine: quiet is p99 <= {QUIET_P99_MS} ms"
    return Finding(area="host", name="noise", state="warn", detail=detail, remedy=remedy)


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info >= MINIMUM_PYTHON:
        return Finding(area="python", name="Python", state="ok", detail=version)
    return Finding(area="python", name="Python", state="missing", detail=version, remedy="install Python 3.11 or newer")


def _package(requirement: Requirement) -> Finding:
    remedy = f"pip install '{requirement.name}" + (f">={requirement.lowest}'" if requirement.lowest else "'")
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        detail = "not installed"
        return Finding(area="packages", name=requirement.name, state="missing", detail=detail, remedy=remedy)
    if _numbers(version) < _numbers(requirement.lowest):
        detail = f"{version}, needs {requirement.lowest}"
        return Finding(area="packages", name=requirement.name, state="warn", detail=detail, remedy=remedy)
    return Finding(area="packages", name=requirement.name, state="ok", detail=version)


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: enough to compare with a lower bound of ours."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def _clock() -> list[Finding]:
    clock = SystemClock()
    coarse = clock.resolution_ns > COARSE_NS
    resolution = Finding(
        area="clock",
        name=clock.name,
        state="warn" if coarse else "ok",
        detail=f"resolution {clock.resolution_ns} ns",
        remedy="figures are no better than this clock" if coarse else "",
    )
    timerfd = sys.platform == "linux"
    timer = Finding(
        area="clock",
        name="timerfd",
        state="ok" if timerfd else "warn",
        detail="available" if timerfd else "not on this system: sends are paced by a thread",
    )
    try:
        version = metadata.version("uvloop")
        loop = Finding(area="clock", name="event loop", state="ok", detail=f"uvloop {version}")
    except metadata.PackageNotFoundError:
        loop = Finding(area="clock", name="event loop", state="warn", detail="asyncio: uvloop would pace sends better")
    return [resolution, timer, loop]


def _host(noise_s: float) -> list[Finding]:
    cores = usable_cores() or 1
    limit = cpu_limit()
    fewer = min(cores, limit or cores)
    detail = f"{cores} usable" + (f", limited to {limit:g} by a cgroup" if limit else "")
    remedy = "" if fewer >= 2 else "one core for the harness and one for the peer is the least"
    findings = [Finding(area="host", name="cores", state="ok" if fewer >= 2 else "warn", detail=detail, remedy=remedy)]
    mode = governor()
    if mode:
        slow = mode == "powersave"
        remedy = "set the governor to performance while measuring" if slow else ""
        state: State = "warn" if slow else "ok"
        findings.append(Finding(area="host", name="cpu governor", state=state, detail=mode, remedy=remedy))
    try:
        with Sentinel() as sentinel:
            since_ns = SystemClock.now_ns()
            time.sleep(noise_s)
            noise = sentinel.result(since_ns)
        findings.append(host_noise(noise))
    except (HarnessError, OSError) as exc:
        findings.append(Finding(area="host", name="noise", state="warn", detail=f"not measured: {exc}"))
    return findings


def _models() -> list[Finding]:
    findings: list[Finding] = []
    for name in sorted(PINNED):
        detail = "cached" if is_cached(name) else "not cached: fetched on first use"
        findings.append(Finding(area="models", name=name, state="ok", detail=detail))
    return findings
