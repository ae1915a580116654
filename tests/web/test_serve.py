"""Who may see the page, and what it answers."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cli.recording import any_alive, read_run
from holdfast.cli.run_store import all_runs
from holdfast.cli.serve import port
from holdfast.views.web.pages import runs_page
from holdfast.views.web.viewer import Viewer
from tests.web.runs import FAILED, FINISHED, SECRET, failed_run, finished_run, many_runs
from tests.web.serving import Served, serve
from tests.workplace import HOLDFAST


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    place = tmp_path_factory.mktemp("serve")
    failed_run(place, seconds=60)
    finished_run(place)
    with serve(place, place) as found:
        yield found


def test_the_token_of_the_link_opens_the_page_and_is_a_cookie_from_then_on(served: Served) -> None:
    status, headers, page = served.ask(f"/?token={served.token}")
    assert status == 200 and FAILED in page.decode()
    cookie, *rules = headers["set-cookie"].split("; ")
    assert set(rules) == {"Path=/", "HttpOnly", "SameSite=Strict"}
    assert served.ask("/", Cookie=cookie)[0] == 200


def test_prometheus_gets_its_metrics_with_the_token_in_a_file(tmp_path: Path) -> None:
    parser = pytest.importorskip("prometheus_client.parser")
    kept = tmp_path / "token"
    finished_run(tmp_path)
    for _ in range(2):  # the second time the same link opens the page
        with serve(tmp_path, tmp_path, "--token-file", str(kept)) as served:
            assert served.token == kept.read_text().strip() and kept.stat().st_mode & 0o777 == 0o600
            assert served.ask("/metrics")[0] == served.ask("/metrics", Authorization="Bearer wrong")[0] == 403
            status, headers, text = served.ask("/metrics", Authorization=f"Bearer {served.token}")
    assert status == 200 and headers["content-type"].startswith("text/plain; version=0.0.4")
    assert isinstance(list(parser.text_string_to_metric_families(text.decode())), list)
    kept.chmod(0o644)
    command = [*HOLDFAST, "serve", "--port", "0", "--token-file", str(kept)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "others may read" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "path", ["/", "/?token=wrong", "/?token=", f"/run/{FAILED}/data", "/static/page.js", "/no/such"]
)
def test_without_the_token_there_is_nothing(served: Served, path: str) -> None:
    status, headers, page = served.ask(path, Cookie=f"holdfast-{served.port}=wrong")
    assert status == 403 and FAILED not in page.decode() and "set-cookie" not in headers


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:1234"}, 200),
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example:80"}, 421),
        ({"Host": ""}, 421),
        ({"Origin": "http://evil.example"}, 421),
        ({"Origin": "null"}, 421),
        ({"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"}, 421),
        ({"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}, 200),
    ],
)
def test_another_name_or_another_site_is_refused_even_with_the_token(
    served: Served, headers: dict[str, str], status: int
) -> None:
    assert served.ask(f"/?token={served.token}", **headers)[0] == status


def test_its_own_origin_is_let_in(served: Served) -> None:
    assert served.ask(f"/?token={served.token}", Origin=served.base)[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_nothing_but_reading_is_answered(served: Served, method: str) -> None:
    status, headers, _ = served.ask(f"/?token={served.token}", method)
    assert status == 405 and headers["allow"] == "GET, HEAD"


def test_every_answer_forbids_scripts_that_are_not_ours(served: Served) -> None:
    for path in ("/", f"/run/{FAILED}/verdict?token={served.token}", f"/run/{FAILED}/data?token={served.token}"):
        _, headers, _ = served.ask(path)
        policy = dict(rule.strip().split(" ", 1) for rule in headers["content-security-policy"].split(";"))
        assert (policy["script-src"], policy["default-src"]) == ("'self'", "'none'")
        assert headers["x-content-type-options"] == "nosniff" and headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        (f"/run/{FINISHED}", 200, "Charts"),
        (f"/run/{FAILED}/verdict", 200, "ValueError: &lt;script&gt;window.pwned = 3&lt;/script&gt;"),
        (f"/run/{FAILED}/new?version=x", 400, "no number"),
        (f"/run/{FAILED}/new", 400, "version"),
        ("/run/no-such-run/data", 404, "no-such-run"),
        ("/run/..%2f..%2fetc/data", 404, ""),
        ("/static/..%2fviewer.py", 404, ""),
        ("/static/plotly.min.js", 200, "plotly.js"),
        (f"/compare?a={FAILED}", 400, "b="),
        (f"/differences?a={FAILED}&b={FINISHED}", 200, "2.12.0"),
    ],
)
def test_what_is_asked_for_is_answered_or_refused(served: Served, path: str, status: int, said: str) -> None:
    sign = "&" if "?" in path else "?"
    found, _, page = served.ask(f"{path}{sign}token={served.token}")
    assert (found, said in page.decode()) == (status, True)


def test_no_secret_leaves_in_any_answer(served: Served) -> None:
    for path in (
        "",
        f"run/{FAILED}/data",
        f"run/{FAILED}/verdict",
        f"run/{FAILED}/line",
        f"run/{FAILED}/new?version=0&x=1",
    ):
        sign = "&" if "?" in path else "?"
        status, _, page = served.ask(f"/{path}{sign}token={served.token}")
        assert status == 200 and SECRET not in page.decode() and "sk-1234" not in page.decode()


def test_the_line_of_a_run_is_its_verdict(served: Served) -> None:
    line = json.loads(served.ask(f"/run/{FAILED}/line?token={served.token}")[2])
    assert (line["outcome"], line["mood"]) == ("failed", "bad") and line["text"].startswith(
        "The script raised ValueError"
    )
    assert json.loads(served.ask(f"/run/{FINISHED}/line?token={served.token}")[2])["outcome"] == "completed"


@pytest.mark.alone
def test_fifty_runs_are_listed_at_once(tmp_path: Path) -> None:
    many_runs(tmp_path, 50)
    with serve(tmp_path, tmp_path) as found:
        best = float("inf")
        for _ in range(5):
            began = time.monotonic()
            status, _, page = found.ask(f"/?token={found.token}")
            best = min(best, time.monotonic() - began)
        assert status == 200 and page.count(b"data-run=") == 50
        assert best < 0.3, f"{best:.2f} s"


@pytest.mark.parametrize("text", ["70000", "x", "-1", "", "１"])
def test_what_is_no_port_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="no port"):
        port(text)


def test_where_there_are_no_runs_yet_some_may_come(tmp_path: Path) -> None:
    viewer = Viewer(lambda: all_runs(str(tmp_path / "none")), read_run, any_alive)
    assert "No runs here yet" in runs_page(viewer.rows())


def test_a_port_that_is_taken_is_named(served: Served, tmp_path: Path) -> None:
    words = ["serve", "--port", str(served.port)]
    done = subprocess.run([*HOLDFAST, *words], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and f"cannot serve at port {served.port}" in done.stderr


def test_other_verbs_load_nothing_of_the_screens() -> None:
    """Only where they are shown: `run` must start in milliseconds, and `why` is asked for often."""
    verbs = ", ".join(f"holdfast.cli.{verb}" for verb in ("run", "why", "log", "stacks", "runs"))
    screens = "{'starlette', 'uvicorn', 'textual', 'plotly'}"
    code = f"import sys, {verbs}; print(sorted({{name.partition('.')[0] for name in sys.modules}} & {screens}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
