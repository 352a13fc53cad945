# SPDX-License-Identifier: BSD-3-Clause
"""A real browser for the tests: headless Chromium, driven by its command line."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--hide-scrollbars",
)

#: Runs before the page's own script: notes everything that goes wrong.
WATCH = """
window.problems = [];
window.addEventListener("error", (e) => problems.push("error: " + e.message));
window.addEventListener("unhandledrejection", (e) => problems.push("rejection: " + e.reason));
document.addEventListener("securitypolicyviolation",
  (e) => problems.push("policy: " + e.violatedDirective + " " + e.blockedURI));
for (const level of ["error", "warn"]) {
  console[level] = (...words) => problems.push(level + ": " + words.join(" "));
}
"""


def find_browser() -> str:
    """The program, or skip with the reason."""
    for name in NAMES:
        found = shutil.which(name)
        if found:
            return found
    pytest.skip(f"needs a browser: none of {', '.join(NAMES)} is installed")


def run_browser(page: Path, profile: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """Open a page in a new profile; the console's messages are on stderr."""
    command = [find_browser(), *FLAGS, f"--user-data-dir={profile}", *flags, page.as_uri()]
    if sys.platform == "linux":
        # Nothing of the user's own settings, and no bus to ask for them.
        environment = {**os.environ, "HOME": str(profile), "DBUS_SESSION_BUS_ADDRESS": "/dev/null"}
    else:
        environment = dict(os.environ)
    profile.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


def console_messages(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def run_in_page(page: Path, code: str, folder: Path, *flags: str) -> Any:
    """What ``code``, the body of a function, returns in a copy of the page, and its problems."""
    act = (
        "const outcome = {};\n"
        f"try {{ outcome.value = (() => {{ {code} }})(); }}\n"
        'catch (e) { problems.push("hook: " + e); }\n'
        "outcome.problems = problems;\n"
        'const out = document.createElement("pre"); out.id = "outcome";\n'
        "out.textContent = btoa(encodeURIComponent(JSON.stringify(outcome)));\n"
        "document.body.appendChild(out);"
    )
    text = page.read_text(encoding="utf-8")
    # The page lets only its own script run: the copy lets these two run as well.
    allowed = " ".join(f"'sha256-{_digest(script)}'" for script in (WATCH, act))
    assert "script-src 'sha256-" in text
    text = text.replace("script-src ", f"script-src {allowed} ", 1)
    text = text.replace("<style>", f"<script>{WATCH}</script>\n<style>", 1)
    text = text.replace("</body>", f"<script>{act}</script>\n</body>", 1)
    copy = folder / f"copy-of-{page.name}"
    copy.write_text(text, encoding="utf-8")
    done = run_browser(copy, folder / "profile", "--dump-dom", *flags)
    found = re.search(r'<pre id="outcome">([^<]*)</pre>', done.stdout)
    assert found, done.stderr
    from urllib.parse import unquote

    outcome = json.loads(unquote(base64.b64decode(found[1]).decode()))
    outcome["console"] = console_messages(done)
    return outcome


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
