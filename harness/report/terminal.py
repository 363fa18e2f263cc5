"""Where commands print: results on standard output, words for a person on standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:  # a command that only says something should not wait for them
    from rich.console import Console


def console() -> Console:
    """Standard output, as wide as the terminal."""
    from rich.console import Console

    return Console()


def print_json(value: Any) -> None:
    """A result for programs, indented."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=1).decode())


def say(line: str) -> None:
    """A line for a person. A peer's words in it cannot steer the terminal."""
    click.echo("".join(char if char.isprintable() else " " for char in line), err=True)
