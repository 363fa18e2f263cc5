"""The command `firstpacket`: gathers the commands, and turns a failure into one line and an exit code.

Commands see all rooms, and import them when they run, so that `--help` is instant. A command group is a module
`cli_<noun>` with a tuple `COMMANDS`.
"""

from __future__ import annotations

import sys

import click

from harness import (
    __version__,
    cli_bench,
    cli_calibrate,
    cli_compare,
    cli_definitions,
    cli_duplex,
    cli_gate,
    cli_live,
    cli_peers,
    cli_recordings,
    cli_replay,
    cli_report,
    cli_score,
    cli_serve,
)
from harness.cli_options import INTERRUPTED, PEER_FAILED, PREREQUISITE, USAGE

GROUPS = (
    cli_bench,
    cli_duplex,
    cli_live,
    cli_replay,
    cli_report,
    cli_score,
    cli_compare,
    cli_gate,
    cli_calibrate,
    cli_serve,
    cli_peers,
    cli_recordings,
    cli_definitions,
)
"""Modules whose `COMMANDS` are the command line."""


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="firstpacket")
def cli() -> None:
    """A stopwatch for speech-to-speech AI: plays spoken queries in real time to a voice API or model, stamps every
    packet that comes back, and reports time to first token, first-packet latency, first audible sound and RTF."""


for _group in GROUPS:
    for _command in _group.COMMANDS:
        cli.add_command(_command)


def main() -> None:
    """Run the command; a failure that firstpacket knows is one line and an exit code, never a traceback."""
    from harness.core.errors import ConfigError, ConnectorError, HarnessError, PrerequisiteError, SessionFormatError
    from harness.report.terminal import say

    try:
        cli(standalone_mode=False)
    except click.exceptions.Abort:
        say("interrupted")
        sys.exit(INTERRUPTED)
    except click.ClickException as exc:
        exc.show()
        sys.exit(USAGE)
    except HarnessError as exc:
        say(f"firstpacket: {exc}")
        codes: dict[type[HarnessError], int] = {
            ConfigError: USAGE,
            SessionFormatError: USAGE,
            PrerequisiteError: PREREQUISITE,
            ConnectorError: PEER_FAILED,
        }
        sys.exit(next((code for kind, code in codes.items() if isinstance(exc, kind)), 1))
    except KeyboardInterrupt:
        say("interrupted")
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
