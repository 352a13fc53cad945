# SPDX-License-Identifier: BSD-3-Clause
"""Every example of the documentation runs, and what the pages promise is there."""

import doctest
import importlib
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lsgp.cli import main

DOCS = Path(__file__).parents[2] / "docs"
SOURCE = Path(__file__).parents[2] / "src" / "lsgp"
REPRODUCTION = Path(__file__).parents[2] / "reproduction"
PAGES = sorted(DOCS.glob("*.md"))
SCRIPTS = sorted((DOCS / "gallery").glob("*.py"))

BLOCK = re.compile(r"^```(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: Blocks that are not run: what users type elsewhere, and Sphinx's own.
NOT_RUN = {"text", "{toctree}", "{image}", "{eval-rst}"}

#: What pages need that is not installed for the tests.
NEEDED = {"optimization": ("torch", "botorch")}


def blocks_of(path):
    """Language, source and first line of each fenced block of a page."""
    return blocks_of_text(path.read_text(encoding="utf-8"))


def blocks_of_text(text):
    for match in BLOCK.finditer(text):
        yield match[1], match[2], text.count("\n", 0, match.start(2))


def run_doctest(source, names, page, line):
    # A runner of its own per block: names go from block to block.
    test = doctest.DocTestParser().get_doctest(source, names, page, page, line)
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    report = []
    result = doctest.DocTestRunner(optionflags=options).run(
        test, out=report.append, clear_globs=False
    )
    names.update(test.globs)
    assert result.failed == 0, "".join(report)


def run_commands(source):
    lines = source.replace("\\\n", " ").splitlines()
    for line in lines:
        assert line.startswith("$ lsgp "), f"{line!r} is not a command of ours"
        assert main(shlex.split(line)[2:]) == 0, line


@pytest.fixture(autouse=True)
def a_folder_of_its_own(tmp_path, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    monkeypatch.chdir(tmp_path)
    yield
    plt.close("all")


# Pages stop tuning early on purpose, to be quick.
@pytest.mark.filterwarnings("ignore::lsgp.TuningStoppedWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_examples_of_a_page_run_in_order(page):
    for module in NEEDED.get(page.stem, ()):
        pytest.importorskip(module, reason="needs the extra botorch: run make test-botorch")
    names = {"__name__": "__main__"}
    for language, source, line in blocks_of(page):
        if language == "python":
            # Lines are counted as in the page, for the traceback.
            exec(compile("\n" * line + source, str(page), "exec"), names)
        elif language == "pycon":
            run_doctest(source, names, page.name, line)
        elif language == "console":
            run_commands(source)
        else:
            assert language in NOT_RUN, f"{page.name}: what is a block of {language}?"


def modules_with_examples():
    for path in sorted([*SOURCE.rglob("*.py"), *REPRODUCTION.glob("*.py")]):
        if ">>> " in path.read_text(encoding="utf-8"):
            root = REPRODUCTION if path.parent == REPRODUCTION else SOURCE
            parts = path.relative_to(root.parent).with_suffix("").parts
            yield ".".join(part for part in parts if part != "__init__")


@pytest.mark.filterwarnings("ignore::lsgp.TuningStoppedWarning")
@pytest.mark.parametrize("name", list(modules_with_examples()))
def test_examples_of_docstrings_run(name):
    for module in NEEDED["optimization"] if "botorch" in name else ():
        pytest.importorskip(module, reason="needs the extra botorch: run make test-botorch")
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    result = doctest.testmod(importlib.import_module(name), optionflags=options)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_gallery_script_draws_its_picture(script, tmp_path):
    (tmp_path / "images").mkdir()
    copy = Path(shutil.copy(script, tmp_path))
    runpy.run_path(str(copy), run_name="__main__")
    assert (tmp_path / "images" / f"{script.stem}.png").stat().st_size > 1000


def test_every_script_of_the_gallery_has_a_page_and_a_small_picture():
    assert len(SCRIPTS) >= 6
    index = (DOCS / "gallery" / "index.md").read_text(encoding="utf-8")
    for script in SCRIPTS:
        page = script.with_suffix(".md").read_text(encoding="utf-8")
        assert f"images/{script.stem}.png" in page
        assert script.name in page
        assert f"({script.stem}.md)" in index
        picture = script.with_name("images") / f"{script.stem}.png"
        assert picture.stat().st_size < 200_000, picture.name


def test_every_equation_that_the_code_cites_is_in_the_method_page():
    method = (DOCS / "method.md").read_text(encoding="utf-8")
    defined = set(re.findall(r"\*\*\[([EJ]\d+)\]", method))
    cited = set()
    for path in [*SOURCE.rglob("*.py"), *SOURCE.rglob("*.h"), *SOURCE.rglob("*.cpp")]:
        cited |= set(re.findall(r"\[([EJ]\d+)\]", path.read_text(encoding="utf-8")))
    assert cited
    assert cited <= defined


def test_links_between_pages_lead_somewhere():
    for page in [*PAGES, *(DOCS / "gallery").glob("*.md")]:
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#:]+\.md)(?:#[^)]*)?\)", text):
            assert (page.parent / target).is_file(), f"{page.name} links to {target}"


def _first_words(lines):
    """Without those of models, which begin with a share."""
    words = [line.split("(")[0].split()[0] for line in lines]
    return [word for word in words if not word.isdecimal()]


def test_quickstart_needs_nothing_but_the_package(tmp_path):
    text = (DOCS / "quickstart.md").read_text(encoding="utf-8")
    before, drawn = text.split("## Draw it")
    assert 'pip install "lsgp[plot]"' in drawn
    sources = [source for language, source, _ in blocks_of_text(before) if language == "python"]
    program = "\n".join(
        [
            "import sys",
            "for name in ('matplotlib', 'pandas', 'polars', 'rich'):",
            "    sys.modules[name] = None  # as if not installed",
            *sources,
        ]
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    # What the page says that it prints: the same lines, but for those of models, whose shares and
    # number depend on the last digits, which differ between processors.
    shown = [source for language, source, _ in blocks_of_text(before) if language == "text"]
    said = [line for block in shown[1:] for line in block.splitlines()]
    assert _first_words(said) == _first_words(done.stdout.splitlines())
