"""Runs a program of the laboratory and takes pictures of it on every screen: `python docs/screenshots.py [CASE] [RUN]`

They are written to docs/images: the terminal's, the page's and the report's. RUN is the directory of a run that was recorded
before. Needs Chromium.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from holdfast.cli.top import run_of
from holdfast.views.top.picture import svg

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
CASE = "keras-leak-callback"
HOLDFAST = [sys.executable, "-m", "holdfast"]
WIDTH, HEIGHT = 1100, 1650


def recorded(case: str) -> Path:
    done = subprocess.run(
        [sys.executable, "-m", "lab", "--keep", "--only", "failing", case],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    kept = next(line for line in done.stderr.splitlines() if "is kept in" in line)
    (run,) = (Path(kept.rpartition(" ")[2]) / ".holdfast" / "runs").iterdir()
    return run


def picture(browser: Browser, address: str, name: str, *, scheme: str, below: str = "") -> None:
    """Of what one sees, or from the place `below` on."""
    size = {"width": WIDTH, "height": HEIGHT}
    page = browser.new_page(viewport=size, color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(address)
    page.wait_for_selector("#figure .scatterlayer .lines path")
    page.wait_for_timeout(500)  # a chart that is drawn for the first time moves into its place
    if below:
        page.evaluate(f"document.querySelector('{below}').scrollIntoView()")
    page.screenshot(path=IMAGES / name)
    page.close()


def main(case: str = CASE, place: str = "") -> None:
    run = Path(place) if place else recorded(case)
    IMAGES.mkdir(exist_ok=True)
    (IMAGES / "top.svg").write_text(svg(run_of(run)))
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        report = Path(scratch) / "report.html"
        store = ["--dir", str(run.parents[1])]
        subprocess.run(
            [*HOLDFAST, "why", run.name, "--html", str(report), *store], check=True, stdout=subprocess.DEVNULL
        )
        serving = subprocess.Popen([*HOLDFAST, "serve", "--port", "0", *store], stdout=subprocess.PIPE, text=True)
        assert serving.stdout is not None
        base, _, token = serving.stdout.readline().strip().partition("/?")
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        try:
            picture(browser, f"{base}/run/{run.name}?{token}", "page.png", scheme="light")
            picture(browser, report.as_uri(), "report.png", scheme="dark", below="#charts")
        finally:
            browser.close()
            serving.terminate()
            serving.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
