"""Machine facts: read from a made-up /proc and /sys; no host or user name."""

from __future__ import annotations

import asyncio
import getpass
import json
import platform

import pytest

from harness.run import machine
from harness.run.machine import machine_facts

pytestmark = pytest.mark.unit


def put(root, path, text):
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


@pytest.fixture
def root(tmp_path):
    put(tmp_path, "proc/cpuinfo", "processor\t: 0\nmodel name\t: Imaginary 9000\nflags\t\t: fpu hypervisor sse\n")
    put(tmp_path, "proc/meminfo", "MemTotal:        4194304 kB\nMemFree: 1 kB\n")
    put(tmp_path, "proc/self/cgroup", "0::/box/inner\n")
    put(tmp_path, "sys/fs/cgroup/box/cpu.max", "150000 100000\n")
    put(tmp_path, "sys/fs/cgroup/box/inner/cpu.max", "max 100000\n")
    put(tmp_path, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n")
    return tmp_path


def test_facts_come_from_proc_and_sys(root):
    facts = machine_facts(root=root)
    assert facts["cpu"] == "Imaginary 9000"
    assert facts["virtual"] is True
    assert facts["memory_mb"] == 4096
    assert facts["cpu_limit"] == 1.5
    assert facts["governor"] == "powersave"
    assert facts["packages"]["numpy"]
    assert "loop" not in facts


def test_version_one_cgroup_limit(tmp_path):
    put(tmp_path, "proc/self/cgroup", "4:memory:/a\n3:cpuset:/\n2:cpu,cpuacct:/pod\n")
    put(tmp_path, "sys/fs/cgroup/cpu,cpuacct/pod/cpu.cfs_quota_us", "50000\n")
    put(tmp_path, "sys/fs/cgroup/cpu,cpuacct/pod/cpu.cfs_period_us", "100000\n")
    assert machine.cpu_limit(tmp_path) == 0.5


@pytest.mark.parametrize("limit", ["max 100000\n", "-1 100000\n", "", "nonsense\n"])
def test_no_limit_is_none(tmp_path, limit):
    put(tmp_path, "proc/self/cgroup", "0::/\n")
    put(tmp_path, "sys/fs/cgroup/cpu.max", limit)
    assert machine.cpu_limit(tmp_path) is None


def test_a_system_that_tells_nothing_leaves_facts_out(tmp_path):
    facts = machine_facts(root=tmp_path)
    assert not {"governor", "virtual", "memory_mb", "cpu_limit"} & facts.keys()
    assert facts["cores"] >= 1


def test_no_host_or_user_name_and_json():
    text = json.dumps(machine_facts())
    for name in (platform.node(), getpass.getuser()):
        # Short names such as "vm" may be part of a kernel's or processor's own name.
        assert len(name) < 5 or name not in text


def test_loop_is_named():
    async def inside():
        return machine_facts()["loop"]

    assert asyncio.run(inside()).startswith("asyncio ")
    uvloop = pytest.importorskip("uvloop")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(inside()).startswith("uvloop 0.")
