from __future__ import annotations

from pathlib import Path

import pytest

from rl4sys.replay import available_disk, available_memory

FREE = "MemTotal: 16000000 kB\nMemFree: 100 kB\nMemAvailable: 8000000 kB\n"


def machine(root: Path, files: dict[str, str]) -> Path:
    for name, text in {"proc/meminfo": FREE, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_without_limits_all_memory_of_the_machine_is_available(tmp_path: Path) -> None:
    assert available_memory(machine(tmp_path, {})) == 8_000_000 * 1024


@pytest.mark.parametrize("limited", ["job/inner", "job", ""])
def test_every_control_group_of_the_process_can_limit_memory(tmp_path: Path, limited: str) -> None:
    group = f"sys/fs/cgroup/{limited}"
    files = {
        "proc/self/cgroup": "0::/job/inner\n",
        f"{group}/memory.max": "1000000\n",
        f"{group}/memory.current": "400000\n",
        f"{group}/memory.stat": "anon 300000\ninactive_file 50000\nactive_file 20000\n",
        "sys/fs/cgroup/job/inner/more/memory.max": "1\n",
    }
    assert available_memory(machine(tmp_path, files)) == 650_000


def test_a_control_group_without_a_limit_limits_nothing(tmp_path: Path) -> None:
    files = {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n", "sys/fs/cgroup/memory.current": "5\n"}
    assert available_memory(machine(tmp_path, files)) == 8_000_000 * 1024


def test_control_groups_of_version_1_count_too(tmp_path: Path) -> None:
    outside, group = "9223372036854771712", "sys/fs/cgroup/memory/box"
    files = {
        "proc/self/cgroup": "5:cpu,cpuacct:/\n4:memory:/box\n0::/\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": outside,
        "sys/fs/cgroup/memory/memory.usage_in_bytes": "7",
        f"{group}/memory.limit_in_bytes": "1000000",
        f"{group}/memory.usage_in_bytes": "900000",
        f"{group}/memory.stat": "inactive_file 1\ntotal_inactive_file 100000\n",
    }
    assert available_memory(machine(tmp_path, files)) == 200_000


def test_a_control_group_over_its_limit_has_nothing_left(tmp_path: Path) -> None:
    group = "sys/fs/cgroup"
    files = {"proc/self/cgroup": "0::/\n", f"{group}/memory.max": "100", f"{group}/memory.current": "200"}
    assert available_memory(machine(tmp_path, files)) == 0


def test_memory_is_unknown_if_the_system_does_not_report_it(tmp_path: Path) -> None:
    assert available_memory(tmp_path) is None


def test_this_machine_has_memory_and_disk() -> None:
    assert (available_memory() or 0) > 0
    assert available_disk(Path("not/there/yet")) > 0
