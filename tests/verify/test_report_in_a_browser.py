"""The page of a verification as a browser shows it."""

import re
import subprocess

import pytest

from kernelpack.verify.html import page
from tests.host import need
from tests.verify.small import verified

BROWSER = "chromium"
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
SAYS = """
<script>
addEventListener("load", () => {
  const shown = (tag) => [...document.querySelectorAll(tag)].filter((e) => e.checkVisibility());
  const images = shown("img").filter((e) => e.complete && e.naturalWidth > 0);
  document.title += ` | ${images.length} pictures, ${shown("td").length} cells`;
  document.querySelectorAll("details").forEach((e) => (e.open = true));
  document.title += `, ${shown("td").length} opened, ${document.body.scrollWidth <= innerWidth}`;
});
</script>
"""
"""Counts what a person sees, before and after all is opened, into the title."""


@pytest.fixture
def shown(tmp_path):
    """The title that a page has in the browser, once the script has counted."""
    need(BROWSER)

    def show(text: str) -> str:
        file = tmp_path / "page.html"
        file.write_text(text.replace("</html>", f"{SAYS}</html>"))
        profile = f"--user-data-dir={tmp_path / 'profile'}"
        command = [BROWSER, *FLAGS, profile, "--window-size=1200,900", "--dump-dom", file.as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        return re.search("<title>(.*)</title>", done.stdout)[1]

    return show


def test_right(shown, tmp_path):
    """All is folded; opened, each case has its row, and the page is no wider than the window."""
    title = "x.kpk: 2 of 2 entries verified, every run right"
    assert shown(page([verified(tmp_path)])) == f"{title} | 0 pictures, 0 cells, 30 opened, true"


def test_wrong(shown, tmp_path):
    """Pictures of what is wrong are there at once."""
    said = shown(page([verified(tmp_path, "neg.f32 %f1, %f1;")]))
    assert said.startswith("x.kpk: 2 of 2 entries verified, 1 of these wrong | 2 pictures, ")
