"""The command as a user meets it: exit codes, one clear line for every bad input, nothing lost, no key leaks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import soundfile

from harness.core.run_directory import RunDirectory
from harness.core.session.writer import PARTIAL

pytestmark = pytest.mark.loopback
QUERIES = Path(__file__).parent.parent / "scenarios" / "packs" / "queries"


def command(*arguments: object, env: dict[str, str] | None = None, **options) -> subprocess.Popen[str]:
    environment = {key: value for key, value in os.environ.items() if not key.endswith("_API_KEY")}
    return subprocess.Popen(
        [sys.executable, "-m", "harness.cli", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**environment, "COLUMNS": "100", **(env or {})},
        **options,
    )


def firstpacket(*arguments: object, env: dict[str, str] | None = None) -> tuple[int, str, str]:
    """Run the command; return (exit code, stdout, stderr)."""
    process = command(*arguments, env=env)
    out, err = process.communicate(timeout=100)
    return process.returncode, out, err


def tone(path: Path, *, amplitude: float = 8000, ms: int = 300, rate_hz: int = 24_000) -> Path:
    wave = np.sin(np.arange(rate_hz * ms // 1000) * 2 * np.pi * 300 / rate_hz) * amplitude
    soundfile.write(path, wave.astype(np.int16), rate_hz, subtype="PCM_16")
    return path


def pack(folder: Path, n: int, **changes: object) -> Path:
    """A folder of `n` short tones with marks in a manifest."""
    folder.mkdir(parents=True)
    rows = []
    for k in range(n):
        tone(folder / f"q{k:03d}.wav")
        rows.append({"id": f"q{k:03d}", "audio": f"q{k:03d}.wav", "lang": "en", "speech_start": 0, "speech_end": 7200})
    rows[-1].update(changes)
    (folder / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture
def bad(tmp_path: Path) -> dict[str, object]:
    """Every bad input by name: arguments of `bench`."""
    (tmp_path / "empty.wav").write_bytes(b"")
    (tmp_path / "cut.flac").write_bytes((QUERIES / "en-01.flac").read_bytes()[:3000])
    (tmp_path / "notes.txt").write_text("hello")
    tone(tmp_path / "silence.wav", amplitude=0)
    (tmp_path / "no-clips").mkdir()
    (tmp_path / "no-clips" / "manifest.jsonl").write_text("")
    pack(tmp_path / "twins", 2, id="q000")
    pack(tmp_path / "typo", 1, txt="hello")
    (tmp_path / "file").write_text("")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "something").write_text("")
    q = ["--queries", tmp_path / "one"]
    pack(tmp_path / "one", 1)
    return {
        "no such file": ["--queries", tmp_path / "nothing.wav"],
        "empty file": ["--queries", tmp_path / "empty.wav"],
        "truncated": ["--queries", tmp_path / "cut.flac"],
        "unknown audio format": ["--queries", tmp_path / "notes.txt"],
        "no speech to time": ["--queries", tmp_path / "silence.wav"],
        "empty, no clips": ["--queries", tmp_path / "no-clips"],
        "already used in line 1": ["--queries", tmp_path / "twins"],
        "did you mean text?": ["--queries", tmp_path / "typo"],
        "no connector speaks http": [*q, "--peer", "http://127.0.0.1/x"],
        "did you mean openai?": [*q, "--peer", "opnai"],
        "did you mean think_ms?": [*q, "--set", "think_m=3", "--out", tmp_path / "o1"],
        "write key=value": [*q, "--set", "think_ms"],
        "not a run directory|is no run directory": [*q, "--out", tmp_path / "full"],
        "is a file": [*q, "--out", tmp_path / "file"],
        "--resume needs --out": [*q, "--resume"],
        "No such option '--lmit'. (Did you mean one of: '--limit'|Did you mean '--limit'": [*q, "--lmit", "3"],
        "10<=x<=200": [*q, "--chunk-ms", "5"],
    }


def test_bad_input_is_one_clear_line_and_exit_code_2(bad: dict[str, list[object]]) -> None:
    running = {words: command("bench", *arguments) for words, arguments in bad.items()}
    wrong = []
    for words, process in running.items():
        _, err = process.communicate(timeout=100)
        clear = any(option in err for option in words.split("|")) and "Traceback" not in err
        lines = [line for line in err.strip().splitlines() if not line.startswith(("Usage:", "Try "))]
        if process.returncode != 2 or not clear or len([line for line in lines if line]) != 1:
            wrong.append((words, process.returncode, err))
    assert wrong == []


def test_a_missing_key_is_a_prerequisite() -> None:
    code, _, err = firstpacket("bench", "--peer", "openai")
    assert (code, err.count("\n")) == (3, 1)
    assert "OPENAI_API_KEY" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--peer", "ws://127.0.0.1:1/v1/realtime"], "connection refused"),
        (["--peer", "ws://nobody.invalid/v1/realtime"], "no such host"),
        (["--set", "refuse_with=401"], "key is wrong"),
        (["--set", "never_answer=true", "--timeout", "1"], "timeout"),
        (["--set", "silent_answer=true"], "silent"),
        (["--set", "close_after_ms=50", "--set", "answer_s=2"], "mid-answer"),
    ],
    ids=str,
)
def test_a_peer_that_fails_everywhere_is_exit_code_4(tmp_path: Path, arguments: list[str], words: str) -> None:
    queries = pack(tmp_path / "q", 1)
    code, out, err = firstpacket(
        "bench", "--queries", queries, "--turn", "manual", "--out", tmp_path / "run", *arguments
    )
    assert code == 4
    assert words in out + err
    assert "Traceback" not in err
    assert (tmp_path / "run" / "metrics.jsonl").exists()
    assert (tmp_path / "run" / "report.html").exists()


def test_keys_never_appear_anywhere(tmp_path: Path) -> None:
    """The peer even sends the key back in its refusal."""
    from http.server import BaseHTTPRequestHandler, HTTPServer
    from threading import Thread

    seen: list[str] = []

    class Refuse(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            seen.append(self.headers.get("Authorization", ""))
            body = f"bad key {self.headers.get('Authorization')}".encode()
            self.send_response(401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Refuse)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        code, out, err = firstpacket(
            "bench",
            *("--peer", f"ws://127.0.0.1:{server.server_port}/v1/realtime", "--key-env", "MY_KEY"),
            *("--queries", pack(tmp_path / "q", 1), "--out", tmp_path / "run"),
            env={"MY_KEY": "sk-marker-1234567890"},
        )
    finally:
        server.shutdown()
        server.server_close()
    assert code == 4
    assert seen == ["Bearer sk-marker-1234567890"]
    assert "sk-marker" not in out + err
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert len(files) >= 5
    assert [path for path in files if b"sk-marker" in path.read_bytes()] == []


def test_json_is_json_and_the_summary_has_its_interface(tmp_path: Path) -> None:
    code, out, _ = firstpacket(
        "bench", "--queries", pack(tmp_path / "q", 2), "--turn", "manual", "--out", tmp_path / "run", "--json"
    )
    assert code == 0
    summary = json.loads(out)
    assert {"schema", "peer", "turns", "status", "failed", "metrics", "harness", "calibration"} <= set(summary)
    assert summary["turns"] == summary["status"]["ok"] == 2
    assert {"n", "p50", "p90", "p95", "p99", "mean", "ci95", "percentiles_all"} <= set(
        summary["metrics"]["first_packet_ms"]
    )
    code, _, err = firstpacket("replay", tmp_path / "run")
    assert code == 0
    assert "equal, bit for bit" in err


@pytest.mark.exact
def test_two_peers_are_interleaved_and_kept_apart(tmp_path: Path) -> None:
    code, _, err = firstpacket(
        *("bench", "--queries", pack(tmp_path / "q", 3), "--turn", "manual", "--out", tmp_path / "run"),
        *("--peer", "agent?think_ms=50", "--peer", "agent?think_ms=250", "--json"),
    )
    assert code == 0, err
    fast, slow = (RunDirectory(tmp_path / "run" / f"agent-think_ms-{ms}") for ms in (50, 250))
    medians = [run.read_json("summary.json")["metrics"]["first_packet_ms"]["p50"] for run in (fast, slow)]
    assert 150 < medians[1] - medians[0] < 250
    starts = sorted(
        (session.header.anchor.monotonic_ns, name, session.header.session)
        for name, run in (("fast", fast), ("slow", slow))
        for session in run.load()
    )
    assert [name for _, _, name in starts] == sorted(name for _, _, name in starts)


def test_a_killed_run_of_200_queries_20_at_once_is_resumed_without_loss(tmp_path: Path) -> None:
    queries, run = pack(tmp_path / "q", 200), RunDirectory(tmp_path / "run")
    arguments = (
        *("bench", "--queries", queries, "--turn", "manual", "--concurrency", 20, "--out", run.path, "--json"),
        *("--set", "answer_s=0.4", "--set", "think_ms=100"),
    )
    process = command(*arguments, start_new_session=True)
    deadline = time.monotonic() + 60
    while len(run.finished()) < 40 and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)  # the whole group: harness and writer die at the same instant
    process.communicate()
    kept = {name: (run.sessions / name / "events.jsonl").read_bytes() for name in run.finished()}
    assert 40 <= len(kept) < 200
    partials = [path for path in run.sessions.iterdir() if path.name.endswith(PARTIAL)]
    assert partials

    code, _, err = firstpacket(*arguments, "--resume", "--repeat", 2)
    assert code == 2
    assert "plan.repeat was 1 and is now 2" in err
    code, out, err = firstpacket(*arguments, "--resume")
    assert code == 0, err
    summary = json.loads(out)
    assert summary["turns"] == summary["status"]["ok"] == 200
    assert len(run.finished()) == 200
    assert not [path for path in run.sessions.iterdir() if path.name.endswith(PARTIAL)]
    assert {name: (run.sessions / name / "events.jsonl").read_bytes() for name in kept} == kept
    rows = run.read_lines("metrics.jsonl")
    assert [row["query"] for row in rows] == [f"q{k:03d}" for k in range(200)]


def test_ctrl_c_keeps_what_is_finished_and_says_how_to_go_on(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "run")
    process = command(
        "bench", "--queries", pack(tmp_path / "q", 40), "--turn", "manual", "--out", run.path, start_new_session=True
    )
    deadline = time.monotonic() + 60
    while len(run.finished()) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "--resume goes on" in err
    assert "Traceback" not in err
    assert 2 <= len(run.finished()) < 40
    assert not [path for path in run.sessions.iterdir() if path.name.endswith(PARTIAL)]
    assert run.report.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX limits")
def test_a_full_disk_stops_the_run_with_one_line_and_keeps_what_is_finished(tmp_path: Path) -> None:
    """A limit on file size stands in for a full disk: the writer process meets a failing write."""
    import resource

    queries = pack(tmp_path / "q", 1)
    process = command(
        *("bench", "--queries", queries, "--turn", "manual", "--repeat", 50, "--out", tmp_path / "run"),
        *("--audio", "wav", "--set", "answer_s=5"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)),
    )
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert "could not be recorded" in err
    assert "Traceback" not in err


def test_help_is_instant_and_lists_every_command() -> None:
    begin = time.monotonic()
    code, out, _ = firstpacket("--help")
    assert code == 0
    assert time.monotonic() - begin < 5  # a hang, not a figure: `--help` takes about 0.1 s
    for name in ("bench", "serve", "calibrate", "replay", "peers", "doctor"):
        assert name in out


def test_help_imports_nothing_heavy() -> None:
    code = "import sys, harness.cli; print([m for m in ('numpy', 'aiohttp', 'websockets', 'rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_serve_refuses_the_world_and_serves_a_run(tmp_path: Path) -> None:
    code, _, err = firstpacket("serve", "--host", "0.0.0.0", "--port", 0)
    assert code == 2
    assert "--public" in err
    server = command("serve", "--port", 0, "--set", "think_ms=50", "--truth", tmp_path / "truth.jsonl")
    try:
        assert server.stdout is not None
        url = json.loads(server.stdout.readline())["url"]
        code, out, err = firstpacket(
            *("bench", "--peer", url, "--queries", pack(tmp_path / "q", 1), "--turn", "manual"),
            *("--out", tmp_path / "run", "--json"),
        )
        assert code == 0, err
        assert json.loads(out)["status"]["ok"] == 1
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=20)
    assert '"type":"append"' in (tmp_path / "truth.jsonl").read_text()


def test_replay_of_something_else_is_one_line(tmp_path: Path) -> None:
    code, _, err = firstpacket("replay", tmp_path)
    assert (code, err.count("\n")) == (2, 1)
