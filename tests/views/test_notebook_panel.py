"""What a notebook shows: all of it text, whatever a run has printed."""

from __future__ import annotations

from pathlib import Path

from holdfast.cli.panel import earlier_death
from holdfast.cli.recording import any_alive
from holdfast.views.notebook_panel import Before, as_html, as_text, news
from holdfast.views.overview import RunReader
from tests.views.recorded import TOKEN, RecordedRun

HOSTILE = f"<script>alert(1)</script>\x1b[2J & {TOKEN}"


def test_numbers_and_what_was_noticed_are_shown_and_nothing_is_markup(tmp_path: Path) -> None:
    run = RecordedRun(tmp_path, "one")
    run.steps(last=7)
    run.event("decision", 8, decision="warn", key="leak", text=HOSTILE)
    reader = RunReader(run.path, any_alive)
    overview, moments = reader.read(), reader.moments()
    page, text = as_html(overview, moments, None), as_text(overview, moments, None)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;·[2J &amp; ***" in page
    assert "<script" not in page and "\x1b" not in page + text
    assert ">step</span> 7" in page and "step 7" in text
    assert "running" in page and "5 GB" not in page and "of 7.45 GiB" in page
    assert news(moments) == "holdfast: <script>alert(1)</script>·[2J & ***"
    assert news([]) == ""


def test_the_verdict_of_a_kernel_that_died_comes_first() -> None:
    before = Before("a-run", f"It died {HOSTILE}", ("because <i>",))
    page, text = as_html(None, [], before), as_text(None, [], before)
    assert page.index("The kernel before this one died.") < page.index("because &lt;i&gt;") and "<i>" not in page
    assert text.splitlines()[0].startswith("holdfast: the kernel before this one died: It died <script>")
    assert text.splitlines()[-1] == "          for more: holdfast why a-run"


def attached(state: Path, number: int, notebook: str = "", gone: bool = True, attached: bool = True) -> Path:
    run = RecordedRun(state, f"{number}", alive=False)
    about = {"command": ["kernel"], "script_pid": 1, "attached": attached, "notebook": notebook}
    run.event("run.start", -1, **about)
    if gone:
        run.event("script.gone", 2)
    else:
        run.event("script.exit", 2, code=0, signal=None)
    run.writer.close()
    return run.path


def test_it_is_that_of_the_run_before_from_the_same_notebook(tmp_path: Path) -> None:
    dead = attached(tmp_path, 1, "a.ipynb")
    attached(tmp_path, 2, "b.ipynb")
    attached(tmp_path, 3, attached=False)
    here = attached(tmp_path, 4, "a.ipynb")
    found = earlier_death(here)
    assert found is not None and found.run == dead.name and "has ended; how was not seen" in found.verdict


def test_a_kernel_that_ended_well_is_not_told_of_nor_one_before_it(tmp_path: Path) -> None:
    attached(tmp_path, 1)
    well = attached(tmp_path, 2, gone=False)
    assert earlier_death(attached(tmp_path, 3)) is None
    assert earlier_death(well) is not None
