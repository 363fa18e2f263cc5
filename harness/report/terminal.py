"""Where commands print: results on standard output, words for a person on standard error."""

from __future__ import annotations

from typing import Any

import click
import msgspec
from rich.console import Console


def console() -> Console:
    """Standard output, as wide as the terminal."""
    return Console()


def print_json(value: Any) -> None:
    """A result for programs, indented."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=1).decode())


def say(line: str) -> None:
    """A line for a person. A peer's words in it cannot steer the terminal."""
    click.echo("".join(char if char.isprintable() else " " for char in line), err=True)
