"""The command `live`: a person speaks with a peer, sees how fast it answers, and keeps the session."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from harness.cli_options import (
    out_option,
    peer_options_of,
    priority_option,
    summary_option,
    takes_peer_options,
    wire_option,
)
from harness.cli_results import print_timing, score_and_keep, write_page
from harness.report.terminal import console, print_json, say

if TYPE_CHECKING:
    from harness.core.run_directory import RunDirectory
    from harness.live.annotation import Annotator
    from harness.live.device import Device
    from harness.live.echo import Way
    from harness.live.run import LiveRequest
    from harness.live.screen import Screen
    from harness.live.web.server import Page

SESSION = ("turn", "chunk_ms", "timeout_s", "instructions", "voice", "model", "audio_format")
"""Options that say how the session is held."""


@click.command("live")
@click.option("--peer", metavar="NAME|URL", help="Who is spoken with, as for bench. Default: the embedded agent.")
@click.option("--web", is_flag=True, help="Speak through a browser: a page on this machine, with its own microphone.")
@click.option(
    "--host",
    metavar="ADDRESS",
    help="Where the page is served, say 0.0.0.0 for a phone: then over TLS. [default: 127.0.0.1]",
)
@click.option("--port", type=click.IntRange(0, 65_535), help="Port of the page. [default: a free one]")
@click.option("--list-devices", is_flag=True, help="List the sound devices, and end.")
@click.option("--input", "capture", metavar="N|NAME", help="The microphone: a number, or a part of its name.")
@click.option("--output", "playback", metavar="N|NAME", help="The loudspeaker or the headphones.")
@click.option(
    "--rate",
    "rate_hz",
    type=click.IntRange(8_000, 192_000),
    help="The device's sample rate. [default: 48000 if it can]",
)
@click.option("--headphones", is_flag=True, help="The agent is not heard by the microphone: speak whenever you like.")
@click.option("--aec", is_flag=True, help="Cancel the agent's echo (extra aec). Not for barge-in figures.")
@click.option("--push-to-talk", is_flag=True, help="Space begins and ends what you say. [default: hands-free]")
@click.option(
    "--turn",
    type=click.Choice(["vad", "manual"]),
    default="vad",
    show_default=True,
    help="Who ends your turn: the peer's VAD, or a commit of ours (then always push-to-talk).",
)
@click.option("--chunk-ms", type=click.IntRange(10, 200), help="Size of the audio chunks. [default: 20, or the peer's]")
@takes_peer_options
@wire_option
@click.option(
    "--audio",
    "audio_format",
    type=click.Choice(["flac", "wav"]),
    default="flac",
    show_default=True,
    help="How recordings are kept.",
)
@priority_option
@out_option
@summary_option
def live_command(**options: Any) -> None:
    """Speak with a peer through microphone and loudspeaker, and see its latency as you feel it.

    With --web the microphone is a browser's, with its echo cancellation. Otherwise, without --headphones or --aec, the
    microphone is shut while the agent is heard. Sessions are recorded, their turns are found and marked afterwards, and
    they are scored and reported like any other run.
    """
    if options["list_devices"]:
        _list_devices(as_json=options["as_json"])
        return
    _check_page_options(options)
    if options["web"]:
        _hold_page(options)
        return
    if options["headphones"] and options["aec"]:
        raise click.UsageError("--aec: with --headphones there is no echo to cancel; leave one of them away")
    from harness.core.clock import SystemClock
    from harness.core.errors import HarnessError
    from harness.live.run import live_peer
    from harness.live.terminal import Terminal

    clock = SystemClock()
    request, echo = _request(options), _echo(options)
    live_peer(request, clock)  # a wrong peer is told before a device is opened
    terminal = Terminal(request, _device(options, clock), echo, _screen(as_json=options["as_json"]), clock)
    try:
        result = terminal.run()
    except HarnessError:
        if terminal.directory is not None and terminal.directory.finished():
            say(f"kept: {terminal.directory.path}")
        raise
    for why in (result.failure, result.reason):
        if why:
            say(f"the session ended: {why}")
    conclude_live(result.directory, as_json=options["as_json"])
    if result.failure:
        say("the sound device failed; what was recorded until then is kept")
        sys.exit(1)


def _check_page_options(options: dict[str, Any]) -> None:
    """What is for the page alone, or for a sound card alone. Raises UsageError."""
    if not options["web"]:
        given = [name for name in ("host", "port") if options[name] is not None]
        if given:
            raise click.UsageError(f"--{given[0]}: is where the page of --web is served; add --web")
        return
    cards = {"capture": "input", "playback": "output", "rate_hz": "rate", "headphones": "headphones", "aec": "aec"}
    given = [option for name, option in cards.items() if options[name]]
    if given:
        raise click.UsageError(f"--{given[0]}: the page asks its browser for that; leave it away with --web")


def _hold_page(options: dict[str, Any]) -> None:
    """Sessions in the browser, until Ctrl-C."""
    from connectors.transports.browser_call import BrowserCall
    from harness.core.clock import SystemClock
    from harness.live.web.run import PageOptions, hold_page

    page = PageOptions(host=options["host"] or "127.0.0.1", port=options["port"] or 0)
    result = hold_page(_request(options), page, BrowserCall, SystemClock(), _tell_page)
    for why in result.reasons:
        say(f"a session ended: {why}")
    if result.fault is not None:
        if result.directory is not None and result.directory.finished():
            say(f"kept: {result.directory.path}")
        raise result.fault
    if result.directory is None:
        say("no session was held: there is nothing to report")
        return
    conclude_live(result.directory, as_json=options["as_json"])
    if result.error is not None:
        raise result.error


def _tell_page(page: Page) -> None:
    say(f"open in a browser, and press Start: {page.url}")
    if page.fingerprint:
        say(f"it will warn: the certificate is this run's own. Its SHA-256 fingerprint: {page.fingerprint}")
    say("Ctrl-C here ends, and reports")


def conclude_live(directory: RunDirectory, *, as_json: bool) -> None:
    """Put the turns into the recording, score it, and show what came out of it. Raises HarnessError."""
    from harness.live.run import put_live_turns
    from harness.run.replay import TIMING

    if not as_json:
        say("finding and marking the turns in the recording")
    turns = put_live_turns(directory, _annotator())
    scored = score_and_keep(directory, as_json=as_json)[TIMING]
    if as_json:
        print_json(scored.summary)
    elif turns:
        print_timing(scored)
        say("speech begins and ends where the offline annotator found it in the recording, after the session")
    else:
        say("nobody was heard to speak: there is no turn to report")
    say(f"report: {write_page(directory)}")


def _annotator() -> Annotator:
    from harness.live.annotation import Annotator
    from scenarios.annotator import annotate, annotator_name

    return Annotator(annotator_name(), annotate)


def _request(options: dict[str, Any]) -> LiveRequest:
    from harness.live.run import LiveRequest
    from harness.run.peers import DEFAULT_PEER
    from harness.run.session_plan import SessionOptions

    return LiveRequest(
        peer=options["peer"] or DEFAULT_PEER,
        options=peer_options_of(options),
        session=SessionOptions(**{key: options[key] for key in SESSION}),
        push_to_talk=options["push_to_talk"],
        out=options["out"],
        priority=options["priority"],
    )


def _echo(options: dict[str, Any]) -> Way:
    return "headphones" if options["headphones"] else "cancel" if options["aec"] else "guard"


def _device(options: dict[str, Any], clock: Any) -> Device:
    from harness.live.sound_card import SoundCard, list_devices, pick

    devices = list_devices()
    capture = pick(devices, options["capture"], capture=True)
    playback = pick(devices, options["playback"], capture=False)
    return SoundCard(clock, capture, playback, options["rate_hz"])


def _screen(*, as_json: bool) -> Screen:
    from harness.live.screen import DrawnScreen, PlainScreen

    if as_json:
        return PlainScreen(lambda line: None)
    return DrawnScreen(say) if sys.stdout.isatty() else PlainScreen(say)


def _list_devices(*, as_json: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    from harness.core.errors import PrerequisiteError
    from harness.live.sound_card import NO_DEVICE, list_devices
    from harness.live.view import plain

    devices = list_devices()
    if as_json:
        print_json(devices)
        return
    if not devices:
        raise PrerequisiteError(NO_DEVICE)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in ("", "device", "host", "in", "out", "rate"):
        table.add_column(name, justify="right" if name in ("", "in", "out", "rate") else "left")
    for each in devices:
        marks = [word for word, on in (("input", each.default_input), ("output", each.default_output)) if on]
        name = plain(each.name) + (f" (default {' and '.join(marks)})" if marks else "")
        table.add_row(
            str(each.index), Text(name), plain(each.host), str(each.inputs), str(each.outputs), f"{each.rate_hz:,}"
        )
    console().print(table)


COMMANDS = (live_command,)
