// The view: network, search box, tabs, and the form and the result of the open panel.

import { activeElement, el, insertHtml, keepKey, uniqueId } from "./dom.js";
import { renderForm } from "./form.js";
import { renderTable } from "./table.js";
import { renderTrace } from "./trace.js";

const BLOCKS = {
  html: (host, payload, api) => insertHtml(host, payload.html, api),
  table: renderTable,
  trace: renderTrace,
};

const SILENCE_MS = 8000;

function render({ model, el: host }) {
  const root = el("div", { class: "ledgerkit ledgerkit-panel tex2jax_ignore mathjax_ignore" });
  host.append(root);
  insertHtml(root, model.get("fallback") || "", { open() {} });
  root.addEventListener("keydown", keepKey);
  const answers = new Map();
  let view = null;
  let silence = null;
  const hear = () => {
    clearTimeout(silence);
    silence = null;
    view?.silent(false);
  };
  const send = (message) => {
    try {
      model.send(message);
    } catch { // the kernel is gone, and its connection is closed
      view?.silent(true);
      return;
    }
    silence ??= setTimeout(() => view?.silent(true), SILENCE_MS);
  };
  const receive = (message) => {
    hear(); // the kernel answers each message at once, while its requests may take longer
    if (message.type === "reply") {
      answers.get(message.request)?.(message.payload);
      answers.delete(message.request);
    } else if (message.type === "window" || message.type === "panel") {
      view ??= drawView(root, send, answers);
      view[message.type](message);
    }
  };
  // ipywidgets reports a kernel that was restarted or has stopped, and one that is back: it answers.
  const follow = () => {
    view?.silent(true);
    send({ type: "ready" });
  };
  model.on("msg:custom", receive);
  model.on("comm_live_update", follow);
  const stopWatching = followTheme(root);
  send({ type: "ready" });
  return () => {
    stopWatching();
    clearTimeout(silence);
    model.off("msg:custom", receive);
    model.off("comm_live_update", follow);
  };
}

/** Set the class lk-dark where the page's text is light. */
function followTheme(root) {
  const update = () => {
    if (!root.isConnected) return; // it has no colour then
    const [red, green, blue] = getComputedStyle(root).color.match(/[\d.]+/g).map(Number);
    root.classList.toggle("lk-dark", 0.299 * red + 0.587 * green + 0.114 * blue > 128);
  };
  const watch = new MutationObserver(update);
  const options = { attributes: true, attributeFilter: ["class", "data-theme", "data-jp-theme-light", "theme", "style"] };
  for (const node of [document.documentElement, document.body]) watch.observe(node, options);
  const query = matchMedia("(prefers-color-scheme: dark)");
  query.addEventListener("change", update);
  requestAnimationFrame(update);
  return () => {
    watch.disconnect();
    query.removeEventListener("change", update);
  };
}

/** Draw the frame of the view; the returned functions show the messages of the kernel. */
function drawView(root, send, answers) {
  const badge = el("span", { class: "lk-network", role: "note" });
  const back = navigationButton("←", "Back", () => send({ type: "back" }));
  const forward = navigationButton("→", "Forward", () => send({ type: "forward" }));
  const search = el("input", {
    type: "search",
    "aria-label": "Search",
    placeholder: "account, transaction, receipt, block, key, symbol, or contract and method",
    spellcheck: "false",
  });
  // Not a form: JupyterLab does not submit forms on Enter.
  search.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    send({ type: "open", kind: "search", id: search.value });
  });
  const searchBox = el("div", { class: "lk-search", role: "search" }, search);
  const header = el("div", { class: "lk-header" }, back, forward, searchBox, badge);
  const tabs = el("div", { class: "lk-tabs", role: "tablist", "aria-label": "Panels" });
  const body = el("div", { class: "lk-body" });
  const silent = el("div", { class: "lk-silent", role: "status" });
  root.replaceChildren(header, tabs, silent, body);
  const panels = new Map(); // by title; each stays as somebody left it
  let known = null;
  return {
    silent(isSilent) {
      silent.textContent = isSilent ? "The kernel does not answer: it is busy with another cell, "
        + "or it has stopped. If it has stopped, run this cell again." : "";
      root.classList.toggle("lk-stopped", isSilent); // the result may be of another input by now
    },
    window(state) {
      if (JSON.stringify(state) === known) return;
      known = JSON.stringify(state);
      badge.hidden = !state.network.text;
      badge.textContent = state.network.text;
      badge.dataset.kind = state.network.kind;
      badge.title = `Requests go to this network: ${state.network.text}`;
      back.disabled = !state.can_go_back;
      forward.disabled = !state.can_go_forward;
      const hasPath = state.has_tabs || state.titles.length > 1;
      back.hidden = forward.hidden = !hasPath;
      searchBox.hidden = !state.has_tabs;
      root.classList.toggle("lk-explorer", state.has_tabs);
      tabs.hidden = !state.has_tabs;
      const open = (title) => send({ type: "select", panel: title });
      if (state.has_tabs) drawTabs(tabs, state.titles, state.selected, open);
    },
    panel(state) {
      const hadFocus = body.contains(activeElement(root));
      if (!panels.has(state.title)) panels.set(state.title, drawPanel(state, send, answers));
      const panel = panels.get(state.title);
      if (panel.node.parentNode !== body) body.replaceChildren(panel.node);
      panel.update(state);
      if (hadFocus && !body.contains(activeElement(root))) panel.node.focus();
    },
  };
}

function navigationButton(sign, label, onclick) {
  const props = { type: "button", class: "lk-button", "aria-label": label, title: label, onclick };
  return el("button", props, sign);
}

/** Draw tabs, between which the arrow keys move; `controls` are the ids of their pages. */
function drawTabs(list, titles, selected, open, controls = []) {
  const hadFocus = list.contains(activeElement(list));
  // Shown at once, so that the next key moves on from here, however late the kernel answers.
  const choose = (title) => {
    drawTabs(list, titles, title, open, controls);
    open(title);
  };
  const buttons = titles.map((title, at) => {
    const isOpen = title === selected;
    return el("button", {
      type: "button",
      role: "tab",
      class: "lk-tab",
      "aria-selected": String(isOpen),
      "aria-controls": controls[at],
      tabindex: isOpen ? 0 : -1,
      onclick: () => choose(title),
    }, title);
  });
  list.onkeydown = (event) => {
    const at = titles.indexOf(selected);
    const last = titles.length - 1;
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    choose(titles[(to + titles.length) % titles.length]);
  };
  list.replaceChildren(...buttons);
  if (hadFocus) buttons[titles.indexOf(selected)]?.focus();
}

/** Draw a panel: its form, its message and the pages of its result. */
function drawPanel(state, send, answers) {
  const sendOwn = (message) => send({ panel: state.title, ...message });
  const form = renderForm(state, { send: sendOwn });
  const message = el("div", { class: "lk-message" });
  const tabs = el("div", { class: "lk-tabs", role: "tablist", "aria-label": "Pages of the result" });
  const pages = el("div", { class: "lk-pages" });
  const open = (kind, id) => send({ type: "open", kind, id });
  const node = el("section", { class: "lk-panel", "aria-label": `${state.title} panel`, tabindex: -1 },
    form.node, message, tabs, pages);
  let openTitle = null;
  let said = null; // the number of the result whose message stands here
  let drawn = null; // the number of the result whose pages stand here
  return {
    node,
    update(next) {
      form.update(next);
      node.setAttribute("aria-busy", String(next.is_busy));
      if (next.result !== said) insertHtml(message, next.message, { open }); // announced once
      said = next.result;
      if (next.pages === null || next.result === drawn) return;
      drawn = next.result;
      const ask = (at) => (request) =>
        question(sendOwn, answers, { at, result: next.result }, request);
      drawPages(next.pages, { tabs, pages, openTitle, api: { open, ask } },
        (title) => { openTitle = title; });
    },
  };
}

/** Ask a block in the kernel something; resolves with its answer. */
function question(send, answers, block, message) {
  const request = uniqueId();
  return new Promise((resolve) => {
    answers.set(request, resolve);
    send({ type: "block", ...block, request, message });
  });
}

/** Draw the pages of a result; a page is drawn when it is opened first. */
function drawPages(pages, { tabs, pages: host, openTitle, api }, onOpen) {
  const titles = pages.map((page) => page.title);
  const ids = titles.map(uniqueId);
  const nodes = pages.map((page, at) =>
    el("div", { class: "lk-page", id: ids[at], role: titles.length > 1 ? "tabpanel" : null }));
  const drawn = new Set();
  const open = (title) => {
    const at = Math.max(titles.indexOf(title), 0);
    nodes.forEach((node, other) => { node.hidden = other !== at; });
    if (!drawn.has(at) && pages[at]) {
      drawn.add(at);
      pages[at].blocks.forEach((block, number) => {
        const part = el("div", { class: "lk-block" });
        nodes[at].append(part);
        BLOCKS[block.kind](part, block, { open: api.open, request: api.ask([at, number]) });
      });
    }
    drawTabs(tabs, titles, titles[at], open, ids);
    if (pages.length) onOpen(titles[at]);
  };
  tabs.hidden = titles.length < 2;
  host.replaceChildren(...nodes);
  open(openTitle);
}

export default { render };
