"""The page and the report in a real browser: Chromium, without a screen."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from holdfast.cli.recording import read_run
from holdfast.cli.why import report_of
from tests.web.contrast import TOO_PALE
from tests.web.runs import FAILED, FINISHED, SECRET, failed_run, finished_run
from tests.web.serving import Served, serve
from tests.workplace import Workplace, wait_for

ARTEFACTS = Path(__file__).parents[2] / ".artefacts" / "screens"
WIDE, PHONE = ViewportSize(width=1200, height=900), ViewportSize(width=360, height=740)
RANGE = "() => { const [a, b] = holdfast.figure.range || holdfast.figure.whole(); return [a, b]; }"
SHARES_AN_AXIS = "() => holdfast.figure.place.data.every((line) => line.xaxis === 'x')"
HOSTILE_DID_NOTHING = (
    "() => window.pwned === undefined && document.querySelectorAll('main img, main script').length === 0"
)


def chromium() -> str:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """`evil.example` is a name that its owner points at the user's own machine: DNS rebinding."""
    path = chromium()
    with sync_playwright() as playwright:
        rules = ["--no-sandbox", "--host-resolver-rules=MAP evil.example 127.0.0.1"]
        opened = playwright.chromium.launch(executable_path=path, args=rules)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("web")
    failed_run(directory)
    finished_run(directory)
    return directory


@pytest.fixture(scope="module")
def served(place: Path) -> Iterator[Served]:
    with serve(place, place) as found:
        yield found


Opened = Callable[..., Page]


@pytest.fixture(scope="module")
def wrong() -> list[str]:
    """What went wrong in a page."""
    return []


@pytest.fixture(scope="module")
def opened(browser: Browser, served: Served, wrong: list[str]) -> Iterator[Opened]:
    """Opens a page with the printed link."""
    contexts = []

    def open_page(path: str, at: Served = served, **how: Any) -> Page:
        context = browser.new_context(**{"viewport": WIDE, "color_scheme": "light", **how})
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("dialog", lambda dialog: wrong.append(f"dialog: {dialog.message}"))
        page.goto(f"{at.base}{path}{'&' if '?' in path else '?'}token={at.token}")
        page.wait_for_selector("body[data-judged]", timeout=60_000)
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def failed_page(opened: Opened) -> Page:
    return opened(f"/run/{FAILED}")


@pytest.fixture
def failed(failed_page: Page, wrong: list[str]) -> Iterator[Page]:
    """The page of the run that failed, as it is when one has just opened it."""
    failed_page.evaluate("() => { holdfast.figure.show(null); document.activeElement.blur(); window.scrollTo(0, 0); }")
    yield failed_page
    assert wrong == []


def kept(page: Page, name: str) -> None:
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=str(ARTEFACTS / f"{name}.png"), full_page=True)


def span(page: Page) -> float:
    low, high = page.evaluate(RANGE)
    return float(high - low)


# -- one run


def test_a_failed_run_shows_its_verdict_charts_and_output(failed: Page) -> None:
    assert failed.inner_text("h1").startswith("The script raised ValueError")
    assert failed.inner_text("#verdict .outcome") == "failed"
    titles = failed.locator("#figure .annotation-text").all_text_contents()
    assert {"Loss", "Gradient norm", "Memory of the GPUs (GiB)"} <= set(titles)
    assert "ada-box" in failed.inner_text("#machine") and "2.13.0" in failed.inner_text("#machine")
    assert "after 12 s in which nothing moved" in failed.inner_text("#stacks")
    assert "python train.py" in failed.inner_text("#processes")
    assert "token=" not in failed.url, "whoever copies the address gives no token away"
    kept(failed, "run-light")


def test_what_a_run_printed_is_text_and_nothing_else(failed: Page) -> None:
    printed = failed.inner_text("#output")
    assert "<script>window.pwned = 1</script><img src=x onerror='window.pwned=2'>" in printed
    assert "red link" in printed and "more characters" in printed and "txet desrever" in printed
    assert "\u202e" not in printed and SECRET not in failed.content()
    assert failed.evaluate(HOSTILE_DID_NOTHING)
    assert failed.evaluate("document.documentElement.scrollWidth") <= WIDE["width"]


def test_charts_zoom_together_by_mouse_and_by_keyboard(failed: Page) -> None:
    whole = span(failed)
    assert failed.evaluate(SHARES_AN_AXIS)
    x, y, width = plot(failed)
    failed.mouse.move(x + width * 0.3, y)
    failed.mouse.down()
    failed.mouse.move(x + width * 0.5, y + 5, steps=4)
    failed.mouse.up()
    wait_for(lambda: span(failed) < whole * 0.25, seconds=20)
    failed.focus("#figure")
    failed.keyboard.press("Home")
    assert span(failed) == whole
    failed.keyboard.press("+")
    assert span(failed) == pytest.approx(whole / 2)
    failed.get_by_role("button", name="Zoom out").click()
    assert span(failed) == whole


def plot(page: Page) -> tuple[float, float, float]:
    """Where the chart of the loss lies in the window: its left side, its middle, its width."""
    place = page.locator("#figure .nsewdrag").nth(1)
    place.scroll_into_view_if_needed()
    box = place.bounding_box()
    assert box is not None
    return box["x"], box["y"] + box["height"] / 2, box["width"]


def test_one_cursor_goes_through_all_charts(failed: Page) -> None:
    x, y, width = plot(failed)
    told = failed.locator("#figure .hoverlayer text")

    def points() -> set[str]:
        failed.mouse.move(x + width * 0.4, y)
        failed.mouse.move(x + width * 0.41, y + 2)
        return {text.split()[0] for text in told.all_text_contents() if text.strip()}

    wait_for(lambda: {"loss", "resident", "gpu0"} <= points(), seconds=20)
    line = failed.locator("#figure .spikeline").first.bounding_box()
    figure = failed.locator("#figure").bounding_box()
    assert line is not None and figure is not None and line["height"] > figure["height"] * 0.8


def test_a_line_of_evidence_leads_to_its_moment(failed: Page) -> None:
    whole = span(failed)
    link = failed.locator("#verdict a.moment").first
    at = float(link.get_attribute("data-at") or 0)
    link.focus()
    failed.keyboard.press("Enter")
    moment = failed.evaluate(f"holdfast.figure.x(holdfast.figure.runs[0], {at} - holdfast.figure.runs[0].origin)")
    low, high = failed.evaluate(RANGE)
    assert low <= moment <= high and high - low < whole / 5
    marked = failed.evaluate("holdfast.figure.place.layout.shapes.filter((shape) => shape.name === 'moment')")
    assert len(marked) == 1 and marked[0]["x0"] < moment < marked[0]["x1"]
    assert failed.evaluate("document.activeElement.id") == "figure"
    kept(failed, "run-moment")


def test_other_signals_are_drawn_when_they_are_opened(failed: Page) -> None:
    failed.locator("#others > summary").click()
    failed.locator("#more details", has_text="Training, count").locator("summary").click()
    failed.wait_for_selector("#more .scatterlayer .lines path")
    failed.get_by_role("button", name="Zoom in").click()
    assert failed.evaluate("document.querySelector('#more .js-plotly-plot').layout.xaxis.range") == failed.evaluate(
        RANGE
    )


def test_everything_is_reached_by_the_keyboard_and_shows_where_it_is(failed: Page) -> None:
    reached: list[str] = []
    look = """() => { const one = document.activeElement, style = getComputedStyle(one);
        return [one.tagName, one.id || one.textContent.trim().slice(0, 30), style.outlineStyle + style.outlineWidth]; }"""
    failed.focus(".skip")
    while True:
        failed.keyboard.press("Tab")
        element, name, outline = failed.evaluate(look)
        if element == "BODY" or len(reached) > 80:
            break
        assert outline == "solid3px", name
        reached.append(name)
    tools = {"Whole run", "Zoom in", "Zoom out", "Earlier", "Later", "Logarithmic loss", "figure", "All other signals"}
    assert reached[0] == "All runs" and tools <= set(reached)


# -- a run that goes on


def test_a_page_follows_a_run_while_it_goes_on(workplace: Workplace, opened: Opened) -> None:
    script = workplace.script(
        """
        import os, time, holdfast
        step = 0
        while not os.path.exists("stop"):
            step += 1
            holdfast.step(loss=1 / step)
            if step % 20 == 0:
                print("step", step, flush=True)
            time.sleep(0.02)
        print("the last line", flush=True)
        """
    )
    running = workplace.start(script, "--name", "live")
    with serve(workplace.path / ".holdfast", workplace.path) as live:
        run = wait_for(lambda: next((workplace.path / ".holdfast/runs").glob("*/journal/watcher-*"), None)).parents[1]
        wait_for(lambda: b"train.loss" in b"".join(part.read_bytes() for part in (run / "journal").iterdir()))
        page = opened(f"/run/{run.name}", at=live)
        assert page.inner_text("#live").startswith("Live") and page.inner_text("#verdict .outcome") == "running"
        points = "() => holdfast.figure.runs[0].signals['train.loss'].t.length"
        before, printed = page.evaluate(points), page.inner_text("#output")
        wait_for(lambda: page.evaluate(points) > before and page.inner_text("#output") != printed, seconds=30)
        kept(page, "run-live")
        (workplace.path / "stop").touch()
        running.wait(timeout=60)
        wait_for(lambda: page.inner_text("#verdict .outcome") == "completed", seconds=30)
        assert "the last line" in page.inner_text("#output") and page.is_hidden("#live")
        assert "the script finished" in page.inner_text("#timeline")


# -- all runs, and two of them


def test_runs_are_listed_with_their_verdicts_and_two_are_chosen_by_keyboard(opened: Opened) -> None:
    page = opened("/")
    rows = page.locator("tr[data-run]")
    assert [row.get_attribute("data-run") for row in rows.all()] == [FINISHED, FAILED]
    assert "The script raised ValueError" in rows.nth(1).inner_text() and page.evaluate(HOSTILE_DID_NOTHING)
    kept(page, "runs-light")
    assert page.get_by_role("button", name="Compare the two chosen").is_disabled()
    for box in page.locator("input[name=run]").all():
        box.focus()
        page.keyboard.press("Space")
    page.get_by_role("button", name="Compare the two chosen").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("body[data-page=compare][data-judged]")
    assert f"a={FINISHED}&b={FAILED}" in page.url


def test_two_runs_lie_over_each_other_and_what_differs_is_told_first(opened: Opened) -> None:
    page = opened(f"/compare?a={FAILED}&b={FINISHED}")
    first = page.locator("#differences tbody tr").first
    assert first.inner_text().split() == ["outcome", "failed", "completed"]
    loss = page.evaluate(
        "holdfast.figure.place.data.filter((line) => line.name.startsWith('loss')).map((line) => line.x[0])"
    )
    assert len(loss) == 2 and abs(loss[0] - loss[1]) < 0.01, "both over the time since their start"
    kept(page, "compare-light")


# -- everybody can use it


@pytest.mark.parametrize("path", ["/", f"/run/{FAILED}", f"/compare?a={FAILED}&b={FINISHED}"])
def test_it_can_be_read_in_both_schemes_and_on_a_phone(opened: Opened, path: str, wrong: list[str]) -> None:
    page = opened(path, has_touch=True)
    name = page.evaluate("document.body.dataset.page")
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.wait_for_timeout(100)
        found = page.evaluate(TOO_PALE)
        assert found["looked"] > 10 and found["pale"] == []
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = false; })")
    kept(page, f"{name}-dark")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(PHONE)
    widest = "Math.max(document.documentElement.scrollWidth, ...[...document.querySelectorAll('#figure .main-svg')].map((one) => one.getBoundingClientRect().width))"
    wait_for(lambda: page.evaluate(widest) <= PHONE["width"], seconds=20)  # the charts are drawn anew
    kept(page, f"{name}-phone")
    assert wrong == []


# -- who may not


def test_a_name_that_points_here_gets_nothing_even_with_the_token(browser: Browser, served: Served) -> None:
    page = browser.new_page()
    for path in (f"/?token={served.token}", f"/run/{FAILED}/data?token={served.token}"):
        answer = page.goto(f"http://evil.example:{served.port}{path}")
        assert answer is not None and answer.status == 421 and FAILED not in page.content()
    page.close()


def test_a_wrong_token_shows_nothing_and_the_right_one_lets_nobody_write(
    browser: Browser, served: Served, failed: Page
) -> None:
    stranger = browser.new_page()
    answer = stranger.goto(f"{served.base}/?token=wrong")
    assert answer is not None and answer.status == 403 and FAILED not in stranger.content()
    stranger.close()
    assert failed.evaluate("document.cookie") == "", "no script gets at the token"
    assert failed.request.get(f"{served.base}/").status == 200
    assert failed.request.post(f"{served.base}/").status == 405


# -- the report


@pytest.fixture(scope="module")
def report(place: Path) -> Path:
    path = place / "why.html"
    path.write_text(report_of(read_run(place / "runs" / FAILED)))
    return path


def test_a_report_opens_from_disk_without_a_network(report: Path, browser: Browser) -> None:
    assert report.stat().st_size < 5 << 20 and SECRET not in report.read_text()
    context = browser.new_context(viewport=WIDE, offline=True)
    page = context.new_page()
    asked: list[str] = []
    wrong: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.goto(report.as_uri())
    page.wait_for_selector("body[data-drawn]")
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == [] and wrong == []
    assert page.evaluate(HOSTILE_DID_NOTHING.replace("main img, main script", "main img"))
    page.locator("#verdict a.moment").first.click()
    assert page.evaluate("holdfast.figure.marked !== null")
    assert page.locator("#figure .scatterlayer .trace").count() > 8
    kept(page, "report")
    context.close()


def test_its_verdict_is_there_without_scripts(report: Path, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    assert page.inner_text("h1").startswith("The script raised ValueError")
    assert "raised from /home/ada/train.py:51" in page.inner_text(
        "#verdict"
    ) and "expected 3 columns" in page.inner_text("#output")
    assert page.is_visible("noscript p") and page.is_hidden("#charts .tools")
    context.close()
