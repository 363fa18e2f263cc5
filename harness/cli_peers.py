"""The commands `peers` and `doctor`: who can be measured, what this machine has, whether a peer does as expected."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from harness.cli_options import OK, PEER_FAILED, PREREQUISITE, json_option, peer_options_of, takes_peer_options
from harness.report.terminal import console, print_json


@click.command("peers")
@json_option
def peers_command(as_json: bool) -> None:
    """List the connectors and what each can do."""
    from harness.report.lists import print_peers
    from harness.run.peers import describe_peers

    described = describe_peers()
    if as_json:
        print_json(described)
    else:
        print_peers(console(), described)


@click.command("doctor")
@click.option("--peer", metavar="NAME|URL", help="Look at a peer instead: say one query to it, with your own key.")
@click.option("--turn", type=click.Choice(["vad", "manual"]), help="Who ends the turn. [default: the peer's own way]")
@click.option("--query", help="Id of a bundled query. [default: the first]")
@takes_peer_options
@click.option("--wire", is_flag=True, help="Keep the raw messages too (needs --out).")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Keep the recording here.")
@json_option
def doctor_command(as_json: bool, peer: str | None, **options: Any) -> None:
    """Say what is installed, what is missing and how to get it, and how quiet this machine is.

    With --peer: play one query to a peer, and name the first departure from the expected order of events.
    """
    if peer is not None:
        _doctor_peer(peer, options, as_json=as_json)
        return
    context = click.get_current_context()
    for name in options:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError("without --peer the doctor looks at this machine and takes --json only")
    from harness.report.lists import print_findings
    from harness.run.doctor import examine

    findings = examine()
    if as_json:
        print_json(findings)
    else:
        print_findings(console(), findings)
    sys.exit(PREREQUISITE if any(f.state == "missing" and f.area == "packages" for f in findings) else OK)


def _doctor_peer(peer: str, options: dict[str, Any], *, as_json: bool) -> None:
    from harness.report.peer_check import print_peer_check
    from harness.run.peer_doctor import PeerRequest, examine_peer
    from harness.run.session_plan import SessionOptions
    from scenarios.pack import load_pack

    if options["wire"] and options["out"] is None:
        raise click.UsageError("--wire needs --out: the directory to keep the messages in")
    clips = [clip for clip in load_pack("queries").clips if options["query"] in (None, clip.id)]
    if not clips:
        raise click.BadParameter(f"the bundled pack has no {options['query']}", param_hint="--query")
    said = {key: options[key] for key in ("timeout_s", "instructions", "voice", "model")}
    request = PeerRequest(
        peer=peer,
        options=peer_options_of(options),
        session=SessionOptions(**said),
        turn=options["turn"],
        out=options["out"],
    )
    check = examine_peer(request, clips[0])
    if as_json:
        print_json(check)
    else:
        print_peer_check(console(), check)
    sys.exit(OK if check.ok else PEER_FAILED)


COMMANDS = (peers_command, doctor_command)
