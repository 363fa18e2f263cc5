"""`python -m tests.bench_scoring [N]`: scoring side by side against the plain loop of one answer after another.

The same engines, weights and decoding both ways, in turns: Whisper base, DistillMOS, and a judge on 127.0.0.1 that
takes 0.5 s for an answer. The plain loop transcribes, rates and asks before it takes the next answer. Prints the peak
memory of each pipeline round as well, for N and for N / 2 answers: it should not grow with them.
"""

from __future__ import annotations

import resource
import sys
import tempfile
from pathlib import Path

import soundfile

from harness.core.audio import float_to_int16
from harness.core.clock import SystemClock
from harness.core.run_directory import RunDirectory
from harness.engines.clip_engine import Clip
from harness.engines.registry import make_engine, parse_spec
from scoring.judge.client import Judge
from scoring.judge.options import JudgeOptions
from scoring.pipeline.answers import answers_of
from scoring.pipeline.engines import EngineChoice, OpenEngines
from scoring.pipeline.score import CACHES, score_run
from scoring.stage_cache import StageCache
from tests.bench_asr import PACKS
from tests.engines.packages import scoring_packages
from tests.scoring.judge.stub_judge import StubJudge
from tests.scoring.pipeline.benchmarks import NAME, Toy, answered, item

JUDGE_S = 0.5
ROUNDS = 2


def recorded(path: Path, n: int) -> RunDirectory:
    """A run of `n` spoken answers, each with a sound of its own (a shift of the level tells repeats apart)."""
    run = RunDirectory(path)
    files = sorted((PACKS / "queries").glob("*.flac"))
    for number in range(n):
        pcm, _ = soundfile.read(files[number % len(files)], dtype="float32")
        sound = float_to_int16(pcm * (1 - 0.01 * (number // len(files))))
        answered(run.sessions, f"s{number:04d}", item(number), text=f"answer {number}", sound=sound)
    return run


def plain(run: RunDirectory, judge: JudgeOptions, folder: Path) -> float:
    """Seconds of the plain loop, weights loaded beforehand."""
    toy, clock = Toy(), SystemClock()
    asr, mos = (make_engine(parse_spec(line, device="cpu")) for line in ("asr:faster-whisper", "mos:distillmos"))
    asr.load()
    mos.load()
    with StageCache(folder / "plain.jsonl") as cache, Judge(judge, cache) as asked:
        begin = clock.now_ns()
        for answer in answers_of(run, NAME):
            clip = Clip(*answer.sound())
            (heard,), _ = asr.run([clip]), mos.run([clip])
            for task in (
                *toy.text_tasks(answer.item, answer.text or ""),
                *toy.speech_tasks(answer.item, None, heard.text),
            ):
                asked.submit(task).result()
        return (clock.now_ns() - begin) / 1e9


def side_by_side(run: RunDirectory, judge: JudgeOptions) -> float:
    """Seconds of the pipeline, its caches empty, the start of its workers included."""
    clock = SystemClock()
    for cache in (run.path / CACHES).glob("*.jsonl"):
        cache.unlink()
    begin = clock.now_ns()
    with OpenEngines(EngineChoice(device="cpu", judge=judge), run) as engines:
        score_run(run, Toy(), engines)
    return (clock.now_ns() - begin) / 1e9


def main() -> None:
    scoring_packages()
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    with tempfile.TemporaryDirectory() as folder, StubJudge(latency_s=JUDGE_S) as stub:
        judge = JudgeOptions(url=stub.url, model=stub.model, concurrency=16)
        half, whole = (recorded(Path(folder) / name, count) for name, count in (("half", n // 2), ("whole", n)))
        loops, piped = [], []
        for _ in range(ROUNDS):
            side_by_side(half, judge)
            half_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            piped.append(side_by_side(whole, judge))
            whole_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            loops.append(plain(whole, judge, Path(folder)))
            (Path(folder) / "plain.jsonl").unlink()
            print(f"plain {loops[-1]:.1f} s, side by side {piped[-1]:.1f} s: {loops[-1] / piped[-1]:.2f}x")
            print(f"  peak memory {half_kb / 1024:.0f} MB for {n // 2} answers, {whole_kb / 1024:.0f} MB for {n}")
    print(f"in all {sum(loops) / sum(piped):.2f}x over {n} answers")


if __name__ == "__main__":
    main()
