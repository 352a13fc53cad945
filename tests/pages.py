# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of reports share: quick models, and a page that is read."""

from html.parser import HTMLParser

import numpy as np

from lsgp import LSGPRegressor
from lsgp.report import write_report

VOID = {"meta", "link", "br"}


class Page(HTMLParser):
    """Elements with their attributes; fails on elements that do not nest."""

    def __init__(self, raw):
        super().__init__()
        self.raw, self.elements, self.open, self.texts = raw, [], [], []
        self.feed(raw)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    def of(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    def part(self, start, end):
        """The page's source from one text to the next of another."""
        return self.raw.split(start, 1)[1].split(end, 1)[0]

    @property
    def charts(self):
        """What is said of the pictures to those who do not see them."""
        return [a["aria-label"] for a in self.of("svg") if a.get("class") == "chart"]

    @property
    def text(self):
        return " ".join("".join(self.texts).split())


def write_page(model, folder, *given, **settings):
    """The report on a model, read again."""
    write_report(model, folder / "r.html", *given, **settings)
    return Page((folder / "r.html").read_text(encoding="utf-8"))


def make_data(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, d))
    return X, np.sin(5 * X).sum(axis=1) + 0.1 * rng.normal(size=n)


def fit(X, y, kind=LSGPRegressor, **settings):
    return kind().set_params(objective=None, n_neighbors=20, **settings).fit(X, y)
