"""A scenario ready for a run: compiled for every repeat at the peer's rate, before any session begins."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from harness.core.audio import NS_PER_MS
from scenarios.clip import Clip
from scenarios.compiler import Script, compile_script
from scenarios.director import NEW_START_NS, OVER_MS, Director
from scenarios.pack import BUNDLED_ROOT, SCENARIOS, Pack, load_pack
from scenarios.scenario import Scenario
from scenarios.scenario_file import load_scenarios


class ScenarioPack(NamedTuple):
    """A pack with its scenarios."""

    pack: Pack
    scenarios: tuple[Scenario, ...]


def load_scenario_pack(name: str) -> ScenarioPack:
    """A bundled pack by name, or a folder with clips and `scenarios/`. Raises ConfigError."""
    pack = load_pack(name)
    root = BUNDLED_ROOT / name if (BUNDLED_ROOT / name).is_dir() else Path(name).expanduser()
    return ScenarioPack(pack, load_scenarios(root / SCENARIOS))


class ScenarioPlay:
    """One scenario of a run; planned like a query. Scripts are made by `at_rate`, one for each repeat.

    over_ms: the silence after which an agent that does not say so has ended its turn."""

    def __init__(
        self,
        scenario: Scenario,
        clips: Sequence[Clip],
        *,
        repeats: int = 1,
        seed: int = 0,
        impairments: Sequence[str] = (),
        over_ms: int = OVER_MS,
        scripts: Sequence[Script] = (),
    ) -> None:
        self._scenario = scenario
        self._clips = clips
        self._repeats = repeats
        self._seed = seed
        self._impairments = tuple(impairments)
        self._over_ms = over_ms
        self._scripts = tuple(scripts)
        self.id = scenario.id
        self.language = scenario.language
        self.category = scenario.category
        self.tags = scenario.tags
        self.instructions = scenario.instructions
        self.linger_ms = scenario.linger_ms
        self.history = tuple((turn.role, turn.text) for turn in scenario.history)

    def at_rate(self, rate_hz: int) -> ScenarioPlay:
        """Compiled at `rate_hz`. Raises ConfigError with the place in the scenario's file."""
        scripts = [
            compile_script(
                self._scenario,
                self._clips,
                rate_hz=rate_hz,
                seed=self._seed,
                repeat=repeat,
                impairments=self._impairments,
            )
            for repeat in range(self._repeats)
        ]
        return ScenarioPlay(
            self._scenario,
            self._clips,
            repeats=self._repeats,
            seed=self._seed,
            impairments=self._impairments,
            over_ms=self._over_ms,
            scripts=scripts,
        )

    @property
    def rules(self) -> dict[str, int]:
        """The parameters by which the director tells the agent's turns apart."""
        return {"over_ms": self._over_ms, "new_start_ms": NEW_START_NS // NS_PER_MS}

    def hangs_on_agent(self, repeat: int) -> bool:
        """Whether an event has its place, or the session its end, only from what the agent does."""
        return self.linger_ms is None or bool(self._scripts[repeat].cues)

    def direct(self, repeat: int, start_ns: int, ahead_samples: int) -> Director:
        """A director of repeat `repeat`; `at_rate` must have been called."""
        return Director(self._scripts[repeat], start_ns, ahead_samples=ahead_samples, over_ms=self._over_ms)
