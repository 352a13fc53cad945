# SPDX-License-Identifier: BSD-3-Clause
"""The report in a real browser: no errors, pictures are drawn, controls work."""

import numpy as np
import pandas as pd
import pytest
from browser import console_messages, find_browser, run_browser, run_in_page
from tuned import regressor

from lsgp.report import write_report

NASTY = "</script><script>window.problems.push('ran')</script>"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    find_browser()
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200, 2))
    names = ["east", NASTY]
    Y = np.column_stack([np.sin(5 * X).sum(axis=1), X[:, 0]]) + 0.1 * rng.normal(size=(200, 2))
    X, Y = pd.DataFrame(X, columns=names), pd.DataFrame(Y, columns=["a", f"b{NASTY}"])
    model = regressor(n_neighbors="auto").fit(X[:150], Y[:150])
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(model, path, X[150:], Y[150:])
    return path


def test_page_loads_without_errors_and_draws_its_pictures(page, tmp_path):
    outcome = run_in_page(
        page,
        """
        const visible = [...document.querySelectorAll("svg.chart")]
          .filter((svg) => svg.getBoundingClientRect().width > 100);
        return {
          charts: visible.length,
          isDrawn: visible.every((svg) => svg.getBBox().height > 50),
          images: [...document.querySelectorAll("image")].every((i) => i.getBBox().width > 0),
          points: document.querySelectorAll("[data-i]").length,
          scripts: document.scripts.length,
          overflow: document.documentElement.scrollWidth - window.innerWidth,
          title: document.title,
        };
        """,
        tmp_path,
        "--window-size=1100,900",
    )
    assert outcome["problems"] == outcome["console"] == []
    value = outcome["value"]
    assert NASTY in value.pop("title")
    assert value.pop("overflow") <= 0
    assert value == {
        # Of the leave-one-out predictions of the first target 4, maps of both 4 and of the rows 1,
        # effects of two inputs on both 4, and 3 more.
        "charts": 16,
        "isDrawn": True,
        "images": True,
        "points": 2 * 2 * (150 + 50),
        "scripts": 4,  # data, the page's own, and the two of this test
    }


def test_controls_work(page, tmp_path):
    outcome = run_in_page(
        page,
        """
        const one = (selector) => document.querySelector(selector);
        const shown = () => [...document.querySelectorAll("#quality [data-source]")]
          .filter((p) => !p.hidden).map((p) => p.dataset.source + "-" + p.dataset.target);
        const result = { first: shown() };
        one('#quality button[data-choose="given"]').click();
        result.given = shown();
        result.pressed = one('#worst button[data-choose="given"]').getAttribute("aria-pressed");
        const select = one("#quality select.target");
        select.value = "1";
        select.dispatchEvent(new Event("change"));
        result.second = shown();
        result.worst = [...document.querySelectorAll("#worst [data-source]")]
          .filter((p) => !p.hidden).length;

        // Sorting, of a plain table and of one with explanations.
        const values = (rows, k) => [...rows].map((r) => Number(r.cells[k].dataset.v));
        const candidates = one("#candidates");
        const loss = candidates.querySelectorAll("th button")[4];
        loss.click();
        result.up = values(candidates.tBodies[0].rows, 4);
        loss.click();
        result.down = values(candidates.tBodies[0].rows, 4);
        result.sort = loss.closest("th").getAttribute("aria-sort");
        const panel = [...document.querySelectorAll("#worst [data-source]")].find((p) => !p.hidden);
        const cases = panel.querySelector("table.cases");
        cases.querySelectorAll("th button")[3].click();
        result.errors = values([...cases.tBodies].map((b) => b.rows[0]), 3);

        // An explanation opens below its row, and closes.
        const why = cases.querySelector("button.why");
        const more = why.closest("tbody").querySelector(".more");
        result.more = [more.hidden];
        why.click();
        result.more.push(more.hidden, more.getBoundingClientRect().height > 50);
        why.click();
        result.more.push(more.hidden);
        window.dispatchEvent(new Event("beforeprint"));
        result.printed = [...cases.querySelectorAll(".more")].map((m) => !m.hidden);
        window.dispatchEvent(new Event("afterprint"));
        result.after = [...document.querySelectorAll(".more")].every((m) => m.hidden);

        // Tooltips.
        const charts = one('#quality [data-source="given"][data-target="1"]');
        const point = charts.querySelector("[data-i]");
        const move = (mark) => mark.dispatchEvent(
          new PointerEvent("pointermove", { bubbles: true, clientX: 40, clientY: 40 }));
        move(point);
        result.tip = one("#tip").textContent;
        result.lit = charts.querySelectorAll(".lit").length;
        move(one("h1"));
        result.hidden = one("#tip").hidden;
        move(charts.querySelector("[data-tip]"));
        result.level = one("#tip").textContent;

        // Light and dark.
        const ground = () => getComputedStyle(document.body).backgroundColor;
        const before = ground();
        one("#theme").click();
        result.themes = [before, ground()];
        return result;
        """,
        tmp_path,
    )
    assert outcome["problems"] == []
    value, n_cases = outcome["value"], len(outcome["value"]["errors"])
    expected = {
        "first": ["loo-0"],
        "given": ["given-0"],
        "pressed": "true",
        "second": ["given-1"],
        "worst": 1,
        "down": sorted(value["up"], reverse=True),
        "up": sorted(value["up"]),
        "sort": "descending",
        "errors": sorted(value["errors"]),
        "more": [True, False, True, True],
        "printed": [True] * 3 + [False] * (n_cases - 3),
        "after": True,
        "lit": 2,  # the same observation in both charts
        "hidden": True,
    }
    assert {name: value[name] for name in expected} == expected
    assert n_cases > 5
    assert value["tip"].startswith("row: ")
    assert f"observed b{NASTY}: " in value["tip"]
    assert "% intervals hold" in value["level"]
    assert value["themes"][0] != value["themes"][1]


def test_page_prints(page, tmp_path):
    done = run_browser(
        page, tmp_path / "profile", f"--print-to-pdf={tmp_path / 'r.pdf'}", "--no-pdf-header-footer"
    )
    assert console_messages(done) == []
    content = (tmp_path / "r.pdf").read_bytes()
    assert content.startswith(b"%PDF")
    assert len(content) > 50_000


def test_tables_scroll_on_a_phone_and_only_there(page, tmp_path):
    script = """
        const wide = [...document.querySelectorAll(".table")]
          .filter((t) => t.getBoundingClientRect().width > 0)
          // A name of fifty letters without a space may scroll anywhere.
          .filter((t) => !t.textContent.includes("problems.push"));
        const lines = [...document.querySelectorAll("#candidates td.text")]
          .map((t) => t.getClientRects().length && t.offsetHeight);
        return {
          page: document.documentElement.scrollWidth - window.innerWidth,
          scrolling: wide.filter((t) => t.scrollWidth > t.clientWidth + 1).length,
          heights: [...new Set(lines)],
        };
        """
    # 500 is the narrowest that a headless window can be.
    phone, desk = (
        run_in_page(page, script, tmp_path, f"--window-size={width},2000")["value"]
        for width in (500, 1280)
    )
    assert phone["page"] <= 0 >= desk["page"]
    assert phone["scrolling"] > 0 == desk["scrolling"]
    # The row heights of one line each: no word was broken.
    assert len(phone["heights"]) == 1
