"""The command `serve`: the embedded voice agent as a server of its own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from harness.report.terminal import console


@click.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--public", is_flag=True, help="Allow a --host that other machines can reach.")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0: any free port.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A knob of the agent. Repeatable.")
@click.option("--brain", metavar="MODEL", help="A local model that answers: cascade, or package.module:Class.")
@click.option("--brain-set", "brain_settings", multiple=True, metavar="KEY=VALUE", help="A setting of the brain.")
@click.option("--truth", type=click.Path(dir_okay=False, path_type=Path), help="Write the true instants here.")
@click.option("--tls", is_flag=True, help="Serve wss:// with a certificate made on the spot.")
@click.option("--knobs", is_flag=True, help="List the knobs and exit.")
def serve_command(**options: Any) -> None:
    """Run the embedded voice agent: a real server with knobs for every trap.

    On one port it speaks OpenAI Realtime (WebSocket and WebRTC), OpenAI Live, Gemini Live, Moshi's socket, chat
    completions over SSE, and SmallWebRTC. It answers with recorded speech, or with what a local model says (--brain).
    """
    from connectors.agent.__main__ import main as agent

    if options["knobs"]:
        from connectors.agent.knobs import FIELDS
        from harness.report.lists import print_knobs

        print_knobs(console(), FIELDS.values())
        return
    arguments = ["--host", options["host"], "--port", str(options["port"])]
    arguments += [item for pair in options["settings"] for item in ("--set", pair)]
    arguments += ["--brain", options["brain"]] if options["brain"] else []
    arguments += [item for pair in options["brain_settings"] for item in ("--brain-set", pair)]
    arguments += ["--truth", str(options["truth"])] if options["truth"] else []
    arguments += ["--tls"] * options["tls"] + ["--public"] * options["public"]
    sys.exit(agent(arguments))


COMMANDS = (serve_command,)
