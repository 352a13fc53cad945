/* SPDX-License-Identifier: BSD-3-Clause */
"use strict";
(() => {
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const root = document.documentElement;

  // Which observations are shown: a panel says which source and target it is of.
  const shown = { source: null, target: "0" };
  const panels = all("[data-source]");
  const sourceButtons = all(".segments button[data-choose]");
  const showPanels = () => {
    for (const panel of panels) {
      const isTarget = !panel.dataset.target || panel.dataset.target === shown.target;
      panel.hidden = panel.dataset.source !== shown.source || !isTarget;
    }
    for (const button of sourceButtons) {
      button.setAttribute("aria-pressed", String(button.dataset.choose === shown.source));
    }
    for (const select of all("select.target")) select.value = shown.target;
  };
  for (const button of sourceButtons) {
    button.addEventListener("click", () => { shown.source = button.dataset.choose; showPanels(); });
  }
  for (const select of all("select.target")) {
    select.addEventListener("change", () => { shown.target = select.value; showPanels(); });
  }
  shown.source = panels.length ? panels[0].dataset.source : null;
  showPanels();

  // Light and dark: as the system says, until the button is used.
  const theme = document.getElementById("theme");
  const isDark = () => root.dataset.theme
    ? root.dataset.theme === "dark"
    : window.matchMedia("(prefers-color-scheme: dark)").matches;
  const nameTheme = () => { theme.textContent = isDark() ? "☀ Light" : "☾ Dark"; };
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    nameTheme();
  });
  nameTheme();

  // Sorting: what moves is a row, or the body that holds a row and its explanation.
  const keyOf = (unit, column) => {
    const row = unit.tagName === "TBODY" ? unit.rows[0] : unit;
    const cell = row.cells[column];
    return cell.dataset.v !== undefined ? Number(cell.dataset.v) : cell.textContent.trim();
  };
  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") {
      // What is not a number comes last in ascending order.
      if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
      return a - b;
    }
    return String(a).localeCompare(String(b), undefined, { numeric: true });
  };
  for (const button of all("th button")) {
    button.addEventListener("click", () => {
      const header = button.closest("th");
      const table = header.closest("table");
      const column = header.cellIndex;
      const up = header.getAttribute("aria-sort") !== "ascending";
      for (const other of all("thead th", table)) other.removeAttribute("aria-sort");
      header.setAttribute("aria-sort", up ? "ascending" : "descending");
      const isCases = table.classList.contains("cases");
      const units = isCases ? [...table.tBodies] : [...table.tBodies[0].rows];
      const parent = isCases ? table : table.tBodies[0];
      units
        .map((unit) => [keyOf(unit, column), unit])
        .sort((a, b) => (up ? 1 : -1) * compare(a[0], b[0]))
        .forEach(([, unit]) => parent.appendChild(unit));
    });
  }

  // Explanations that open below their row.
  const setOpen = (button, isOpen) => {
    button.setAttribute("aria-expanded", String(isOpen));
    button.textContent = isOpen ? "Hide" : "Why?";
    button.closest("tbody").querySelector(".more").hidden = !isOpen;
  };
  const openers = all("button.why");
  for (const button of openers) {
    setOpen(button, false);
    button.addEventListener("click", () => {
      setOpen(button, button.getAttribute("aria-expanded") !== "true");
    });
  }
  // On paper, where nothing opens: what the reader opened, or else the worst few.
  const N_PRINTED = 3;
  let opened = [];
  window.addEventListener("beforeprint", () => {
    for (const table of all("table.cases")) {
      const closed = all("button.why", table);
      if (closed.some((button) => button.getAttribute("aria-expanded") === "true")) continue;
      opened.push(...closed.slice(0, N_PRINTED));
    }
    for (const button of opened) setOpen(button, true);
  });
  window.addEventListener("afterprint", () => {
    for (const button of opened) setOpen(button, false);
    opened = [];
  });

  // Tooltips. A point's text is put together from the numbers of its observation; hovering over
  // it in one chart marks the same observation in the others.
  const data = JSON.parse(document.getElementById("observations").textContent);
  const tip = document.getElementById("tip");
  const textOf = (mark) => {
    if (mark.dataset.tip !== undefined) return mark.dataset.tip;
    const panel = mark.closest("[data-source]");
    const view = data[`${panel.dataset.source}-${panel.dataset.target}`];
    const point = view.points[mark.dataset.i];
    return view.columns.map((name, k) => `${name}: ${point[k]}`).join("\n");
  };
  const light = (mark, isOn) => {
    if (mark.dataset.i === undefined) return;
    const panel = mark.closest("[data-source]");
    for (const same of all(`[data-i="${mark.dataset.i}"]`, panel)) same.classList.toggle("lit", isOn);
  };
  const show = (mark, x, y) => {
    tip.textContent = textOf(mark);
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const left = x + 14 + box.width > window.innerWidth ? x - 14 - box.width : x + 14;
    const top = y + 14 + box.height > window.innerHeight ? y - 14 - box.height : y + 14;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${Math.max(4, top)}px`;
  };
  const markOf = (event) => event.target.closest && event.target.closest("[data-tip], [data-i]");
  let current = null;
  const leave = () => { if (current) light(current, false); current = null; tip.hidden = true; };
  document.addEventListener("pointermove", (event) => {
    const mark = markOf(event);
    if (mark !== current) { leave(); current = mark; if (mark) light(mark, true); }
    if (mark) show(mark, event.clientX, event.clientY);
  });
  document.addEventListener("focusin", (event) => {
    const mark = markOf(event);
    if (!mark) return;
    leave();
    current = mark;
    const box = mark.getBoundingClientRect();
    show(mark, box.right, box.bottom);
  });
  document.addEventListener("focusout", leave);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") leave(); });
})();
