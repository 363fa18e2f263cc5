"""Options and exit codes that several commands share."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

OK, USAGE, PREREQUISITE, PEER_FAILED, INTERRUPTED = 0, 2, 3, 4, 130


priority_option = click.option(
    "--priority",
    type=click.Choice(["normal", "nice", "realtime"]),
    default="realtime",
    show_default=True,
    help="Scheduling of the measuring process, as far as the system allows; the session header says what it got.",
)


json_option = click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
summary_option = click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON instead of a table.")
out_option = click.option(
    "--out", type=click.Path(path_type=Path), help="Run directory. [default: bench_results/<date>_…]"
)
resume_option = click.option("--resume", is_flag=True, help="Go on with the run in --out; finished sessions are kept.")
seed_option = click.option("--seed", type=int, default=0, show_default=True, help="Seed of every random choice.")
wire_option = click.option("--wire", is_flag=True, help="Keep the raw messages too (wire.jsonl of each session).")
impair_option = click.option(
    "--impair",
    "impairments",
    multiple=True,
    metavar="SPEC",
    help="Impair all speech, e.g. noise:white:snr=5 or reverb:rt60=0.5. Repeatable: applied in this order.",
)


def _device(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    if value is not None and not re.fullmatch(r"cpu|mps|cuda(:\d+)?", value):
        raise click.BadParameter(f"{value!r} is not cpu, cuda, cuda:N or mps")
    return value


_PEER_OPTIONS = (
    click.option("--model", help="Model name, where the peer takes one."),
    click.option("--instructions", help="System instructions for the peer."),
    click.option("--voice", help="Voice name, where the peer takes one."),
    click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A setting of the peer. Repeatable."),
    click.option(
        "--device",
        metavar="cpu|cuda[:N]|mps",
        callback=_device,
        help="Where a local model computes.",
    ),
    click.option(
        "--dtype",
        type=click.Choice(["float32", "bfloat16", "float16"]),
        help="Numbers that a local model computes in.",
    ),
    click.option("--compile", is_flag=True, help="Compile a local model before its first session."),
    click.option("--key-env", metavar="NAME", help="Environment variable that holds the peer's key."),
    click.option(
        "--header",
        "headers",
        multiple=True,
        metavar="'NAME: VALUE'",
        help="A header of every request to the peer; 'NAME: $VARIABLE' takes it from the environment. Repeatable.",
    ),
    click.option("--insecure", is_flag=True, help="Accept any TLS certificate."),
    click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(0.1, 86_400),
        default=30.0,
        show_default=True,
        help="Seconds to wait for an answer after the end of speech, and for the connection.",
    ),
)


def takes_peer_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Everything that says how a peer is reached; `peer_options_of` reads it."""
    for option in reversed(_PEER_OPTIONS):
        command = option(command)
    return command


def peer_options_of(options: dict[str, Any]) -> Any:
    """What `takes_peer_options` and --wire took."""
    from harness.core.connector import PeerOptions
    from harness.run.peers import split_settings

    if not math.isfinite(options["timeout_s"]):
        raise click.BadParameter("must be a number of seconds", param_hint="--timeout")
    settings = dict(split_settings(options["settings"]))
    for name in ("device", "dtype", "compile"):
        if options[name]:
            if name in settings:
                raise click.BadParameter(f"was given as --set {name}= too", param_hint=f"--{name}")
            settings[name] = "true" if options[name] is True else options[name]
    return PeerOptions(
        **{key: options[key] for key in ("model", "key_env", "headers", "insecure", "timeout_s", "wire")},
        settings=settings,
    )
