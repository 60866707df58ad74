// A table: one page of rows at a time, which the kernel filters, sorts and writes to files.

import { activeElement, announce, copyButton, copyText, el, idLink, uniqueId } from "./dom.js";

const TYPING_PAUSE_MS = 250;

/** Draw a table. `payload` has the columns and the first page, as Table.describe returns them. */
export function renderTable(host, payload, api) {
  const table = new TableView(payload, api);
  host.replaceChildren(table.node);
}

const ASSET_KINDS = { nep141: "token", nep171: "contract", nep245: "contract", stake: "contract" };

/** The kind and the id that a cell links to; an asset such as "nep141:wrap.near" names a contract. */
function linkTarget(kind, text) {
  if (kind !== "asset") return [kind, text];
  const [standard, contractId] = text.split(":");
  return [ASSET_KINDS[standard], contractId];
}

class TableView {
  constructor(payload, api) {
    this.api = api;
    this.columns = payload.columns;
    this.payload = payload;
    this.client = uniqueId();
    this.number = 0;
    this.nRows = payload.n_rows;
    this.start = 0;
    this.rows = payload.rows;
    this.visible = payload.visible; // the columns of the next page
    this.shown = payload.visible; // and of this one
    this.sort = [];
    this.filters = {};
    this.search = "";
    this.isExact = false;
    this.active = { row: 1, column: 0 }; // the cell that the Tab key reaches
    this.build();
    this.drawHead();
    this.drawRows();
  }

  // Building ------------------------------------------------------------------------------

  build() {
    const name = this.payload.caption || "Table";
    this.toolbar = this.buildToolbar();
    this.problem = el("div", { class: "lk-problem", role: "alert" });
    this.headRow = el("tr", { "aria-rowindex": 1 });
    this.filterRow = el("tr", { class: "lk-filters", hidden: true, "aria-rowindex": 2 });
    this.body = el("tbody");
    const caption = this.payload.caption ? el("caption", {}, this.payload.caption) : null;
    this.grid = el("table", { role: "grid", "aria-label": name, "aria-multiselectable": "false" },
      caption, el("thead", {}, this.headRow, this.filterRow), this.body);
    this.grid.addEventListener("keydown", (event) => this.onKey(event));
    this.grid.addEventListener("focusin", (event) => this.onFocus(event));
    this.grid.addEventListener("dblclick", (event) => {
      const cell = event.target.closest("tbody td");
      if (cell) this.openCell(cell);
    });
    const scroll = el("div", { class: "lk-scroll" }, this.grid);
    this.detail = el("div", { class: "lk-detail", hidden: true });
    this.status = el("span", { class: "lk-count", role: "status" });
    this.pager = el("span", { class: "lk-pager" });
    const steps = [["First", () => 0], ["Previous", () => this.start - this.payload.size],
      ["Next", () => this.start + this.payload.size], ["Last", () => this.lastStart()]];
    this.steps = steps.map(([label, to]) => this.button(label, () => this.goTo(to())));
    this.pager.append(...this.steps);
    const footer = el("div", { class: "lk-footer" }, this.status, this.pager);
    this.node = el("section", { class: "lk-table", "aria-label": name },
      this.toolbar, this.problem, scroll, footer, this.detail);
  }

  buildToolbar() {
    const search = el("input", {
      type: "search", class: "lk-find", "aria-label": "Search all columns",
      placeholder: "search all columns", spellcheck: "false", autocomplete: "off",
    });
    const find = () => this.load({ search: search.value, start: 0 }, search);
    this.onTyping(search, find);
    const filters = this.button("Filters", () => {
      this.filterRow.hidden = !this.filterRow.hidden;
      filters.setAttribute("aria-expanded", String(!this.filterRow.hidden));
      if (this.active.row > 0) this.active.row += this.filterRow.hidden ? -1 : 1;
      if (!this.filterRow.hidden) this.filterRow.querySelector("input")?.focus();
    });
    filters.setAttribute("aria-expanded", "false");
    const exact = this.button("Exact values", () => {
      this.isExact = !this.isExact;
      exact.setAttribute("aria-pressed", String(this.isExact));
      this.drawRows();
      if (this.sort.length || Object.keys(this.filters).length) this.load({ start: 0 });
    });
    exact.setAttribute("aria-pressed", "false");
    exact.title = "Show integers of the smallest unit, whole ids and times";
    const saves = Object.entries(this.payload.formats).map(([ending, label]) => {
      const save = this.button(label, () => this.save(ending, save));
      save.setAttribute("aria-label", `Save as ${label}`);
      return save;
    });
    const bar = el("div", { class: "lk-toolbar" }, search, filters, this.columnMenu(), exact,
      el("span", { class: "lk-saves" }, "Save as ", saves));
    return bar;
  }

  columnMenu() {
    const boxes = this.columns.map((column, at) => {
      const box = el("input", { type: "checkbox", checked: this.visible.includes(at) });
      box.addEventListener("change", () => {
        const chosen = boxes.flatMap((each, position) => (each.checked ? [position] : []));
        if (chosen.length) this.load({ visible: chosen });
        else box.checked = true;
      });
      return box;
    });
    const labels = boxes.map((box, at) => el("label", {}, box, this.columns[at].name));
    const more = this.payload.n_hidden
      ? el("div", {}, `and ${this.payload.n_hidden.toLocaleString("en")} more in the frame`) : null;
    const menu = el("details", { class: "lk-columns" }, el("summary", {}, "Columns"),
      el("div", { class: "lk-choices", role: "group", "aria-label": "Columns", tabindex: -1 },
        labels, more));
    menu.addEventListener("toggle", () => menu.open && boxes[0]?.focus());
    menu.addEventListener("focusout", (event) => {
      if (!menu.contains(event.relatedTarget)) menu.open = false;
    });
    menu.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !menu.open) return;
      event.stopPropagation();
      menu.open = false;
      menu.querySelector("summary").focus();
    });
    return menu;
  }

  button(label, onclick) {
    return el("button", { type: "button", class: "lk-button", onclick }, label);
  }

  /** Call a function when somebody pauses typing in a field, or presses Enter. */
  onTyping(input, act) {
    let timer = null;
    let last = input.value;
    const now = () => {
      clearTimeout(timer);
      if (input.value === last) return;
      last = input.value;
      act();
    };
    input.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(now, TYPING_PAUSE_MS);
    });
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") {
        event.preventDefault();
        now();
      }
    });
  }

  // Requests ------------------------------------------------------------------------------

  /** Request a page for changed settings; a newer request replaces one under way. */
  async load(changes, field = null) {
    Object.assign(this, changes);
    const number = (this.number += 1);
    this.node.setAttribute("aria-busy", "true");
    const reply = await this.api.request({
      do: "page", client: this.client, number, start: this.start, count: this.payload.size,
      sort: this.sort, filters: this.filters, search: this.search, exact: this.isExact,
      columns: this.visible,
    });
    if (number !== this.number || reply.superseded) return;
    this.node.setAttribute("aria-busy", "false");
    this.problem.textContent = reply.error ?? "";
    for (const input of this.node.querySelectorAll("[aria-invalid]")) {
      input.removeAttribute("aria-invalid");
    }
    this.node.classList.toggle("lk-old", Boolean(reply.error));
    if (reply.error) {
      field?.setAttribute("aria-invalid", "true");
      this.status.textContent = `${this.statusText()}, as before the refused entry`;
      return;
    }
    this.nRows = reply.n_rows;
    this.start = reply.start;
    this.rows = reply.rows;
    this.shown = this.visible;
    const focused = activeElement(this.node);
    const hadFocus = this.grid.contains(focused) && focused.tagName !== "INPUT";
    this.drawHead();
    this.drawRows(hadFocus);
  }

  lastStart() {
    return Math.max(Math.ceil(this.nRows / this.payload.size) - 1, 0) * this.payload.size;
  }

  goTo(start) {
    const next = Math.min(Math.max(start, 0), this.lastStart());
    return next === this.start ? null : this.load({ start: next });
  }

  sortBy(column, isAdded) {
    const key = this.sort.find((each) => each.column === column);
    const next = !key ? { column, descending: false }
      : key.descending ? null : { column, descending: true };
    const others = isAdded ? this.sort.filter((each) => each.column !== column) : [];
    return this.load({ sort: next ? [...others, next] : others, start: 0 });
  }

  async save(format, button) {
    const label = this.payload.formats[format];
    button.disabled = true;
    const reply = await this.api.request({
      do: "save", format, sort: this.sort, filters: this.filters, search: this.search,
      exact: this.isExact,
    });
    button.disabled = false;
    button.focus();
    this.problem.textContent = reply.error ?? "";
    if (reply.error) return;
    const bytes = Uint8Array.from(atob(reply.data), (char) => char.charCodeAt(0));
    const url = URL.createObjectURL(new Blob([bytes], { type: reply.media_type }));
    const link = el("a", { href: url, download: reply.name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
    announce(button, `saved ${countRows(reply.n_rows)} as ${label}`);
  }

  // Drawing -------------------------------------------------------------------------------

  drawHead() {
    const inputs = new Map([...this.filterRow.querySelectorAll("input")].map((input) =>
      [Number(input.dataset.column), input]));
    this.headRow.replaceChildren(...this.shown.map((at) => this.headCell(at)));
    const had = activeElement(this.filterRow);
    const cells = this.shown.map((at) => el("td", {}, inputs.get(at) ?? this.filterInput(at)));
    const isSame = cells.length === inputs.size && this.shown.every((at) => inputs.has(at));
    if (!isSame || !inputs.size) this.filterRow.replaceChildren(...cells);
    else this.restoreFilters(inputs);
    if (had && this.filterRow.contains(had)) had.focus();
    this.grid.setAttribute("aria-colcount", String(this.columns.length));
  }

  /** Leave the fields where they are, since moving them would take the keyboard away. */
  restoreFilters(inputs) {
    [...this.filterRow.cells].forEach((cell, position) => {
      const input = inputs.get(this.shown[position]);
      if (!cell.contains(input)) cell.replaceChildren(input);
    });
  }

  headCell(at) {
    const column = this.columns[at];
    const order = this.sort.findIndex((each) => each.column === at);
    const state = order < 0 ? "none" : this.sort[order].descending ? "descending" : "ascending";
    const arrow = { none: "", ascending: "▲", descending: "▼" }[state];
    const rank = arrow && this.sort.length > 1 ? String(order + 1) : "";
    const button = el("button", {
      type: "button", class: "lk-sort", tabindex: -1, title: column.note || null,
      onclick: (event) => this.sortBy(at, event.shiftKey),
    }, column.name, el("span", { class: "lk-arrow", "aria-hidden": "true" }, arrow + rank));
    const props = { role: "columnheader", scope: "col", "aria-sort": state, "aria-colindex": at + 1 };
    return el("th", { ...props, class: column.right ? "lk-number" : null }, button);
  }

  filterInput(at) {
    const column = this.columns[at];
    const input = el("input", {
      type: "text", tabindex: -1, "data-column": at, spellcheck: "false", autocomplete: "off",
      "aria-label": `Filter ${column.name}`,
      placeholder: { number: "> 100 or 1..5", time: "2026-01 or > …", bool: "yes or no" }[column.kind]
        ?? "part of it",
    });
    this.onTyping(input, () => {
      const filters = { ...this.filters, [at]: input.value };
      if (!input.value.trim()) delete filters[at];
      this.load({ filters, start: 0 }, input);
    });
    return input;
  }

  drawRows(hadFocus = false) {
    this.body.replaceChildren(...this.rows.map((row, number) => {
      const cells = row.cells.map((cell, position) => this.bodyCell(cell, row.row, position));
      return el("tr", { "aria-rowindex": this.start + number + 3 }, cells);
    }));
    this.grid.setAttribute("aria-rowcount", String(this.nRows + 2));
    this.steps.forEach((step, at) => {
      step.disabled = at < 2 ? this.start === 0 : this.start >= this.lastStart();
    });
    this.pager.hidden = this.nRows <= this.payload.size;
    this.status.textContent = this.statusText();
    this.setActive(this.active.row, this.active.column, hadFocus);
  }

  statusText() {
    const write = (number) => number.toLocaleString("en");
    const all = write(this.payload.n_rows);
    const isFiltered = this.nRows !== this.payload.n_rows;
    if (this.nRows <= this.payload.size) {
      return `${isFiltered ? `${write(this.nRows)} of ` : ""}${countRows(this.payload.n_rows)}`;
    }
    const last = this.start + this.rows.length;
    const range = `Rows ${write(this.start + 1)} to ${write(last)} of ${write(this.nRows)}`;
    return isFiltered ? `${range} (${all} in all)` : range;
  }

  bodyCell(cell, row, position) {
    const column = this.columns[this.shown[position]];
    const { text, exact, more } = typeof cell === "string" ? { text: cell, exact: cell } : cell;
    const shown = this.isExact && exact !== undefined ? exact : text;
    const props = {
      role: "gridcell", tabindex: -1, "aria-colindex": this.shown[position] + 1,
      class: column.right ? "lk-number" : null, title: exact !== shown ? exact : null,
      "data-row": row, "data-position": position,
    };
    const [kind, id] = linkTarget(column.id, exact ?? "");
    const isId = kind && id;
    const link = isId ? idLink(kind, id, shown, this.api) : shown;
    const td = el("td", props, link);
    if (isId) {
      const copy = copyButton(exact);
      for (const node of [td.firstChild, copy]) node.tabIndex = -1;
      td.append(copy);
    }
    if (more) td.append(this.moreButton(td));
    return td;
  }

  moreButton(td) {
    const more = this.button("whole text", (event) => {
      event.stopPropagation();
      this.openCell(td);
    });
    more.className = "lk-more";
    more.tabIndex = -1;
    return more;
  }

  // Cells ---------------------------------------------------------------------------------

  cellOf(td) {
    const { row, position } = td.dataset;
    const cell = this.rows.find((each) => each.row === Number(row))?.cells[position] ?? "";
    return typeof cell === "string" ? { text: cell, exact: cell } : cell;
  }

  /** Return the whole text of a cell, which may have to come from the kernel. */
  async wholeText(td) {
    const { exact } = this.cellOf(td);
    if (exact !== undefined) return { text: exact, visible: exact };
    const column = this.shown[Number(td.dataset.position)];
    return this.api.request({ do: "cell", row: Number(td.dataset.row), column });
  }

  async copyCell(td) {
    const reply = await this.wholeText(td);
    const done = !reply.error && await copyText(reply.text);
    if (td.isConnected) td.focus();
    announce(this.status, done ? "copied" : reply.error ?? "copying is not allowed here");
  }

  /** Show the whole text of a cell below the table. */
  async openCell(td) {
    const reply = await this.wholeText(td);
    const name = this.columns[this.shown[Number(td.dataset.position)]].name;
    const close = this.button("Close", () => {
      this.detail.hidden = true;
      if (td.isConnected) td.focus();
    });
    const title = `${name}, row ${Number(td.dataset.row).toLocaleString("en")}`;
    const text = el("pre", { tabindex: 0, "aria-label": title }, reply.error ?? reply.visible);
    this.detail.replaceChildren(el("strong", {}, title), copyButton(reply.text ?? "", title), close, text);
    this.detail.onkeydown = (event) => event.key === "Escape" && close.click();
    this.detail.hidden = false;
    close.focus();
  }

  // Keyboard ------------------------------------------------------------------------------

  /** The rows that can be reached: names, filters if they are open, and the page. */
  gridRows() {
    return [...this.grid.rows].filter((row) => !row.hidden);
  }

  /** What takes the focus in a cell: its button or field, or the cell itself. */
  target(cell) {
    return cell?.querySelector(".lk-sort, input") ?? cell;
  }

  setActive(row, column, isFocused) {
    const rows = this.gridRows();
    const at = rows[Math.min(Math.max(row, 0), rows.length - 1)];
    const cell = at?.cells[Math.min(Math.max(column, 0), at.cells.length - 1)];
    for (const node of this.grid.querySelectorAll('[tabindex="0"]')) node.tabIndex = -1;
    const node = this.target(cell);
    if (!node) return;
    this.active = { row: rows.indexOf(at), column: cell.cellIndex };
    node.tabIndex = 0;
    if (isFocused) node.focus();
  }

  onFocus(event) {
    const cell = event.target.closest("td, th");
    const row = this.gridRows().indexOf(cell?.parentElement);
    if (row >= 0) this.setActive(row, cell.cellIndex, false);
  }

  async onKey(event) {
    const cell = event.target.closest("td, th");
    if (!cell) return;
    if (event.key === "c" && (event.ctrlKey || event.metaKey)) {
      if (cell.closest("tbody") && getSelection().isCollapsed) {
        event.preventDefault();
        await this.copyCell(cell);
      }
      return;
    }
    if (event.key === "Enter" && event.target === cell && cell.closest("tbody")) {
      event.preventDefault();
      const link = cell.querySelector("a");
      if (link) link.click();
      else await this.openCell(cell);
      return;
    }
    if (isInsideText(event)) return;
    const to = this.moved(event);
    if (to) {
      event.preventDefault();
      this.setActive(to.row, to.column, true);
    } else if (event.key === "PageDown" || event.key === "PageUp") {
      event.preventDefault();
      const direction = event.key === "PageDown" ? 1 : -1;
      await this.goTo(this.start + direction * this.payload.size);
    }
  }

  /** Return the cell that a key leads to. */
  moved(event) {
    const { row, column } = this.active;
    const isFar = event.ctrlKey || event.metaKey;
    const last = this.shown.length - 1;
    const end = this.gridRows().length - 1;
    switch (event.key) {
      case "ArrowDown": return { row: row + 1, column };
      case "ArrowUp": return { row: row - 1, column };
      case "ArrowRight": return { row, column: column + 1 };
      case "ArrowLeft": return { row, column: column - 1 };
      case "Home": return { row: isFar ? 0 : row, column: 0 };
      case "End": return { row: isFar ? end : row, column: last };
      default: return null;
    }
  }
}

function countRows(count) {
  return `${count.toLocaleString("en")} row${count === 1 ? "" : "s"}`;
}

/** True if a key moves within the text of a field, and not to another cell. */
function isInsideText(event) {
  const field = event.target;
  if (field.tagName !== "INPUT") return false;
  const { key } = event;
  if (key === "Home" || key === "End") return true;
  if (key !== "ArrowLeft" && key !== "ArrowRight") return false;
  const edge = key === "ArrowLeft" ? 0 : field.value.length;
  return field.selectionStart !== edge || field.selectionEnd !== edge;
}
