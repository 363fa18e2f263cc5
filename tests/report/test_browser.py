"""The page in a real browser, opened from disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.core.run_directory import RunDirectory
from tests.report.sample_run import Plan, row_of, summary_of, write_session

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--autoplay-policy=no-user-gesture-required",
]
PAINTED = """(id) => [...document.querySelectorAll('#' + id + ' canvas')].map((canvas) => {
  const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  let painted = 0;
  for (let i = 3; i < pixels.length; i += 4) if (pixels[i]) painted++;
  return painted;
})"""

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="/usr/bin/chromium is not installed (Debian: chromium)"),
]


class Watched:
    """A page, and everything that it complained about or asked for."""

    def __init__(self, page) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))


def until(page, expression: str) -> None:
    """Wait until an expression is true; the page's own policy forbids the evaluation that Playwright's wait needs."""
    for _ in range(200):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(25)
    raise AssertionError(f"never true: {expression}")


def until_shown(page, session: str) -> None:
    until(page, f"document.getElementById('view-about').textContent.startsWith('{session} ')")


@pytest.fixture(scope="module")
def chromium() -> Iterator:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def watched(chromium, mixed_run: RunDirectory) -> Iterator[Watched]:
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    found = Watched(context.new_page())
    found.page.goto(mixed_run.report.as_uri())
    found.page.wait_for_selector("#plot canvas")
    found.page.wait_for_timeout(200)
    yield found
    context.close()


def test_page_is_quiet_drawn_and_asks_for_nothing(watched: Watched, mixed_run: RunDirectory) -> None:
    page = watched.page
    for part in ("overview", "plot", "ecdf", "dots"):
        assert all(count > 500 for count in page.evaluate(PAINTED, part)), part
    beside = "JSON.parse(data.textContent).views.findIndex((view) => view.file)"
    for index in (2, page.evaluate(beside)):
        page.select_option("#view-choice", str(index))
        session = page.evaluate("(i) => JSON.parse(data.textContent).views[i].session", index)
        until_shown(page, session)
        assert page.evaluate(PAINTED, "plot")[0] > 500
    assert page.evaluate("window.hacked") is None
    outside = [url for url in watched.requests if not url.startswith(mixed_run.path.as_uri())]
    assert outside == []
    assert watched.complaints == []


def test_keyboard_reaches_and_moves_the_timeline(watched: Watched) -> None:
    page = watched.page
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "detail":
            break
    assert page.evaluate("document.activeElement.id") == "detail"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    labels = "[...document.querySelectorAll('.flag')].map((node) => node.textContent)"
    gap = page.evaluate(labels)
    page.keyboard.press("0")
    page.wait_for_timeout(80)
    whole = page.evaluate(labels)
    assert any(label.startswith("speech start") for label in whole)
    page.keyboard.press("g")
    page.wait_for_timeout(80)
    assert page.evaluate(labels) == gap
    page.keyboard.press("+")
    page.keyboard.press("ArrowRight")
    page.wait_for_timeout(80)
    assert page.evaluate(labels) != gap
    assert watched.complaints == []


@pytest.mark.parametrize("width", [1280, 420])
def test_labels_never_cover_each_other(chromium, mixed_run: RunDirectory, width: int) -> None:
    page = chromium.new_page(viewport={"width": width, "height": 900})
    page.goto(mixed_run.report.as_uri())
    page.wait_for_selector("#plot canvas")
    for index in range(7):
        page.select_option("#view-choice", str(index))
        for zoom in ("gap", "all", "in"):
            page.click(f"[data-zoom={zoom}]")
            page.wait_for_timeout(60)
            boxes = page.evaluate(
                """[...document.querySelectorAll('.flag span')].map((node) => {
                  const box = node.getBoundingClientRect(); return [box.left, box.top, box.right, box.bottom]; })"""
            )
            for i, a in enumerate(boxes):
                assert a[0] >= 0
                assert a[2] <= width
                for b in boxes[:i]:
                    apart = a[2] <= b[0] + 1 or b[2] <= a[0] + 1 or a[3] <= b[1] + 1 or b[3] <= a[1] + 1
                    assert apart, (index, zoom, a, b)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.close()


def test_sound_plays_and_a_click_moves_it(watched: Watched) -> None:
    page = watched.page
    until(page, "document.querySelector('#sound audio').readyState >= 2")
    duration = page.evaluate("document.querySelector('#sound audio').duration")
    view = page.evaluate("(() => { const v = JSON.parse(data.textContent).views[0]; return v.to_ms - v.from_ms; })()")
    assert duration == pytest.approx(view / 1000, abs=0.05)
    page.locator("#detail .u-over").click(position={"x": 500, "y": 60})
    until(page, "document.querySelector('#sound audio').currentTime > 0.5")
    assert page.evaluate("document.querySelector('.playhead').hidden") is False
    page.focus("#detail")
    page.keyboard.press("Space")
    until(page, "!document.querySelector('#sound audio').paused")
    assert watched.complaints == []


def test_a_click_on_a_row_moves_the_cursor(watched: Watched) -> None:
    page = watched.page
    cursor, sound = (
        "document.getElementById('cursor').textContent",
        "document.querySelector('#sound audio').currentTime",
    )
    page.click("[data-zoom=gap]")
    view = page.evaluate("JSON.parse(data.textContent).views[0]")
    at = {name: ms for name, ms, _ in view["anchors"]}
    assert page.evaluate(cursor) == ""
    page.locator("#instants tr", has_text="last_packet").locator("td").last.click()
    assert page.evaluate(cursor) == f"cursor {at['last_packet']:,.1f} ms"
    assert page.evaluate(sound) == pytest.approx((at["last_packet"] - view["from_ms"]) / 1000, abs=0.002)
    plot = page.locator("#detail .u-over").bounding_box()
    head = page.locator(".playhead").bounding_box()
    assert plot is not None
    assert head is not None
    assert plot["x"] <= head["x"] <= plot["x"] + plot["width"]
    page.focus("#detail")
    page.keyboard.press("p")
    before = max(ms for ms in at.values() if ms < at["last_packet"])
    assert page.evaluate(cursor) == f"cursor {before:,.1f} ms"
    page.locator("#instants button").first.focus()
    page.keyboard.press("Enter")
    assert page.evaluate(cursor) == f"cursor {at['speech_start']:,.1f} ms".replace("-", "−")
    assert watched.complaints == []


def test_a_turn_in_the_list_opens_and_plays(watched: Watched, mixed_run: RunDirectory) -> None:
    page = watched.page
    line = page.locator("#turns tr[data-view]").last
    name = line.locator("button").inner_text()
    line.locator("button").focus()
    page.keyboard.press("Enter")
    until_shown(page, name)
    assert page.evaluate("document.activeElement.id") == "detail"
    assert page.evaluate("document.querySelector('#sound audio').src").startswith(mixed_run.path.as_uri())
    page.keyboard.press("Space")
    until(page, "document.querySelector('#sound audio').currentTime > 0.3")
    until(page, "document.getElementById('cursor').textContent !== ''")
    page.keyboard.press("Space")
    assert any(f"/report_views/{name}" in url for url in watched.requests)
    assert page.locator("iframe").count() == 0
    assert watched.complaints == []


def test_dark_mode_and_print_redraw(watched: Watched) -> None:
    page = watched.page
    colour = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(colour) == "rgb(255, 255, 255)"
    page.emulate_media(color_scheme="dark")
    page.wait_for_timeout(150)
    assert page.evaluate(colour) == "rgb(20, 24, 28)"
    assert page.evaluate(PAINTED, "plot")[0] > 500
    assert len(page.pdf(format="A4", print_background=True)) > 20_000
    page.emulate_media(media="print")
    page.wait_for_timeout(150)
    assert page.evaluate(colour) == "rgb(255, 255, 255)"
    assert page.evaluate("document.querySelector('#plot canvas').getBoundingClientRect().width") <= 680
    assert watched.complaints == []


def test_a_narrow_page_shows_the_main_columns_and_says_that_there_are_more(chromium, mixed_run: RunDirectory) -> None:
    page = chromium.new_page(viewport={"width": 420, "height": 900})
    page.goto(mixed_run.report.as_uri())
    page.wait_for_selector("#plot canvas")
    headings = page.evaluate(
        """[...document.querySelectorAll('#figures .scroll')[0].querySelectorAll('thead th')].map((node) =>
          [node.textContent, node.getBoundingClientRect().right])"""
    )
    assert [text for text, _ in headings[:4]] == ["metric", "p50", "95 % interval of p50", "n"]
    assert headings[3][1] <= 420
    assert headings[-1][1] > 420
    hint = page.locator("#figures .more").first
    assert hint.is_visible()
    assert "scroll" in hint.inner_text()
    box = page.locator("#figures .scroll").first
    box.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_timeout(500)
    assert page.evaluate("document.querySelector('#figures .scroll').scrollLeft") > 0
    page.set_viewport_size({"width": 1280, "height": 900})
    hint.wait_for(state="hidden")
    page.close()


@pytest.mark.parametrize("width", [1280, 420])
def test_a_run_that_never_connected_is_reasons_without_a_chart(chromium, tmp_path: Path, width: int) -> None:
    from harness.report.html import write_report

    rows = [row_of(Plan(session=f"s{i}", status="peer_error", error="connection refused")) for i in range(3)]
    run = RunDirectory(tmp_path)
    run.write_lines("metrics.jsonl", rows)
    run.write_json("summary.json", summary_of(rows))
    write_report(run)
    watched = Watched(chromium.new_page(viewport={"width": width, "height": 900}))
    watched.page.goto(run.report.as_uri())
    watched.page.wait_for_timeout(100)
    assert watched.page.locator("canvas").count() == 0
    cause = watched.page.get_by_text("connection refused").first.bounding_box()
    assert cause is not None
    assert cause["y"] < 500
    assert watched.page.evaluate("document.documentElement.scrollWidth") == width
    assert watched.complaints == []
    watched.page.close()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (420, "dark")])
def test_conversations_fit_the_page_and_keep_quiet(chromium, tmp_path: Path, width: int, scheme: str) -> None:
    from harness.report.html import write_report
    from tests.report.duplex_run import write_conversations

    run = write_conversations(tmp_path / "run")
    write_session(run.sessions, Plan(session="s00"))
    write_report(run)
    context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    watched = Watched(context.new_page())
    page = watched.page
    page.goto(run.report.as_uri())
    page.wait_for_timeout(100)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    boxes = page.evaluate(
        """[...document.querySelectorAll('.histogram rect')].map((node) => {
          const box = node.getBoundingClientRect(); return [box.left, box.right, box.height]; })"""
    )
    assert boxes
    assert all(0 <= left < right <= width and height > 0 for left, right, height in boxes)
    ink = "getComputedStyle(document.querySelector('.panel tr{}:not(.category) .p50')).color"
    assert page.evaluate(ink.format(".few")) != page.evaluate(ink.format(":not(.few)"))
    page.locator("tr[data-view]", has_text="user interruption").click()
    until(page, "document.getElementById('cursor').textContent === 'cursor 4,000.0 ms'")
    assert page.evaluate(PAINTED, "plot")[0] > 500
    labels = "[...document.querySelectorAll('.flag')].map((node) => node.textContent)"
    assert any(label.startswith("e4000 begins") for label in page.evaluate(labels))
    assert watched.complaints == []
    assert [url for url in watched.requests if not url.startswith(run.path.as_uri())] == []
    context.close()
