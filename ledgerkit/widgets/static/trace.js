// A trace: verdict, receipt tree, a receipt's details, timeline and balance changes.
import { copyButton, el, idLink, uniqueId } from "./dom.js";

const TRACE_ROW_PX = 26;
const TRACE_TREE_PX = 440;
const TRACE_UNFOLDED = 300; // receipts visible at first, at most
const TRACE_INDENTS = 16; // levels; deeper ones have their depth written
const TRACE_ARROWS = 300; // receipts; a larger timeline counts them instead
const TRACE_COLUMNS = 120; // of the timeline; of more, neighbours share one
const TRACE_LANE_PX = 100; // the names of shards
const TRACE_WAIT_MS = 60; // so that a held arrow key asks for one receipt, not for each

/** Draw a trace. `api.request` answers {do: "receipt" | "moved", at}, `api.open` opens an id. */
export function renderTrace(host, payload, api) {
  const receipts = traceReceipts(payload);
  const root = el("div", { class: "lk-trace" }, traceSummary(payload, api));
  host.replaceChildren(root);
  if (!receipts.length) return;
  const details = el("section", {
    class: "lk-receipt-details", tabindex: "0", "aria-label": "Receipt",
  });
  const known = new Map();
  if (payload.details) known.set(payload.selected, payload.details);
  const shown = { at: null, timer: null };

  const show = (at) => traceDetails(details, receipts[at], known.get(at), api, select);
  const load = async (at) => {
    const answer = await api.request({ do: "receipt", at });
    if (!answer.error) known.set(at, answer);
    if (at !== shown.at) return; // another receipt was selected meanwhile
    if (answer.error) details.replaceChildren(el("p", { role: "alert" }, answer.error));
    else show(at);
  };
  const select = (at) => {
    if (at === shown.at) return;
    shown.at = at;
    tree.reveal(at);
    timeline.mark(at);
    clearTimeout(shown.timer);
    if (known.has(at)) show(at);
    else shown.timer = setTimeout(() => load(at), TRACE_WAIT_MS);
  };
  const tree = traceTree(receipts, payload.statuses, select);
  const timeline = traceTimeline(receipts, payload, select);
  root.append(
    traceSection("Receipts", payload.summary, tree.controls,
      el("div", { class: "lk-trace-pair" }, tree.node, details)),
    traceSection("Timeline", payload.timeline.title, null, timeline.node),
  );
  if (payload.moved.total) root.append(traceMoved(payload, api));
  tree.draw();
  select(payload.selected);
}

/** Turn the columns of the payload into objects, with children and depth. */
function traceReceipts({ parent, status, statuses, label, receiver, gas, shard, timeline }) {
  const receipts = parent.map((above, at) => ({
    at, parent: above, children: [], depth: 0, place: 0,
    mark: statuses[status[at]][0], words: statuses[status[at]][1], tone: statuses[status[at]][2],
    label: label.texts[label.at[at]], receiver: receiver.texts[receiver.at[at]],
    gas: gas[at], shard: shard.at[at], column: timeline.column[at],
  }));
  for (const receipt of receipts) { // creators come before what they created
    const creator = receipts[receipt.parent];
    if (!creator) continue;
    receipt.depth = creator.depth + 1;
    receipt.place = creator.children.push(receipt);
  }
  return receipts;
}

function traceSummary(payload, api) {
  const { verdict: [mark, words, tone], transaction, network, headline, explanation } = payload;
  const id = transaction ? traceValue(transaction, api) : "of unknown hash";
  return el("div", {},
    el("p", {}, el("strong", { class: `lk-badge lk-tone-${tone}` }, `${mark} ${words}`),
      " transaction ", ...[id].flat(), ` on ${network}`),
    el("p", { class: "lk-headline" }, headline),
    el("details", {}, el("summary", {}, "Explanation"),
      explanation.map((text) => el("p", { class: "lk-prose" }, text))));
}

function traceSection(title, note, controls, ...children) {
  const heading = el("div", { class: "lk-trace-heading" },
    el("h4", {}, title), el("span", { class: "lk-muted" }, note), controls);
  return el("section", { "aria-label": title }, heading, ...children);
}

// The tree --------------------------------------------------------------------------------

/** A tree of which only the rows in sight are elements: it may have any number of receipts. */
function traceTree(receipts, statuses, select) {
  const prefix = uniqueId();
  const roots = receipts.filter((receipt) => !receipts[receipt.parent]);
  const unfolded = traceFirstUnfolded(roots);
  const space = el("div", { class: "lk-tree-space", role: "presentation" });
  const node = el("div", {
    class: "lk-tree", role: "tree", tabindex: "0", "aria-label": "Receipts by creation",
    onkeydown: (event) => press(event), onscroll: () => drawRows(),
  }, space);
  node.style.maxHeight = `${TRACE_TREE_PX}px`;
  let visible = [];
  let position = new Map();
  let selected = null;

  const draw = () => {
    visible = traceVisible(roots, unfolded);
    position = new Map(visible.map((receipt, index) => [receipt, index]));
    space.style.height = `${visible.length * TRACE_ROW_PX}px`;
    drawRows();
  };
  const drawRows = () => {
    const first = Math.max(0, Math.floor(node.scrollTop / TRACE_ROW_PX) - 5);
    const last = first + Math.ceil(TRACE_TREE_PX / TRACE_ROW_PX) + 10;
    space.replaceChildren(...visible.slice(first, last).map((row, offset) => line(row, first + offset)));
    if (selected) node.setAttribute("aria-activedescendant", `${prefix}-${selected.at}`);
  };
  const line = (receipt, index) => {
    const { at, depth, children, mark, words, tone, label, receiver, gas, parent } = receipt;
    const isOpen = children.length > 0 && unfolded.has(receipt);
    const siblings = receipts[parent]?.children ?? roots;
    const text = `${label} on ${receiver}`;
    const row = el("div", {
      id: `${prefix}-${at}`, class: `lk-receipt lk-tone-${tone}`, role: "treeitem",
      "aria-level": depth + 1, "aria-setsize": siblings.length,
      "aria-posinset": receipt.place || roots.indexOf(receipt) + 1,
      "aria-expanded": children.length ? String(isOpen) : null,
      "aria-selected": String(receipt === selected), "aria-label": `${text}, ${words}, ${gas}`,
      title: `${text}: ${words}`, onclick: () => select(at),
    },
    el("span", { class: "lk-fold", onclick: (event) => { event.stopPropagation(); fold(receipt); } },
      children.length ? (isOpen ? "▾" : "▸") : ""),
    depth > TRACE_INDENTS ? el("span", { class: "lk-muted" }, `${depth} `) : null,
    el("span", { class: "lk-mark" }, mark), " ",
    el("span", { class: "lk-receipt-text" }, el("b", {}, label), ` on ${receiver}`),
    tone === "ok" ? null : el("span", { class: "lk-word" }, words),
    isOpen || !children.length ? null : el("span", { class: "lk-muted" }, `+${children.length}`),
    el("span", { class: "lk-muted lk-gas" }, gas));
    row.style.top = `${index * TRACE_ROW_PX}px`;
    row.style.paddingLeft = `${Math.min(depth, TRACE_INDENTS)}em`;
    return row;
  };
  const fold = (receipt, open = !unfolded.has(receipt)) => {
    if (!receipt.children.length) return;
    if (open) unfolded.add(receipt);
    else unfolded.delete(receipt);
    draw();
    if (!position.has(selected)) select(receipt.at);
  };
  const reveal = (at) => {
    selected = receipts[at];
    let above = receipts[selected.parent];
    if (!position.has(selected)) {
      for (; above; above = receipts[above.parent]) unfolded.add(above);
      draw();
    }
    const top = position.get(selected) * TRACE_ROW_PX;
    const height = node.clientHeight || TRACE_TREE_PX;
    if (top < node.scrollTop) node.scrollTop = top;
    else if (top + TRACE_ROW_PX > node.scrollTop + height) {
      node.scrollTop = top + TRACE_ROW_PX - height;
    }
    drawRows();
  };
  const press = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !selected) return;
    const index = position.get(selected);
    const isOpen = unfolded.has(selected);
    const go = (to) => select(visible[Math.max(0, Math.min(to, visible.length - 1))].at);
    const keys = {
      ArrowDown: () => go(index + 1), ArrowUp: () => go(index - 1),
      PageDown: () => go(index + 12), PageUp: () => go(index - 12),
      Home: () => go(0), End: () => go(visible.length - 1),
      ArrowRight: () => (isOpen && selected.children.length ? go(index + 1) : fold(selected, true)),
      ArrowLeft: () => {
        if (isOpen && selected.children.length) fold(selected, false);
        else if (receipts[selected.parent]) select(selected.parent);
      },
      Enter: () => fold(selected), " ": () => fold(selected),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  };
  const button = (text, onclick) => el("button", { type: "button", class: "lk-small", onclick }, text);
  const foldAll = (open) => () => {
    for (const receipt of receipts) if (open) unfolded.add(receipt); else unfolded.delete(receipt);
    draw();
    if (position.has(selected)) reveal(selected.at);
    else select(traceRoot(receipts, selected).at);
  };
  const failed = receipts.filter((receipt) => receipt.tone === "bad");
  const nextFailed = () => {
    const order = traceVisible(roots, new Set(receipts)).filter((receipt) => receipt.tone === "bad");
    const rank = new Map(order.map((receipt, index) => [receipt, index]));
    select(order[((rank.get(selected) ?? -1) + 1) % order.length].at);
  };
  const controls = el("span", { class: "lk-trace-controls" },
    button("Unfold all", foldAll(true)), button("Fold all", foldAll(false)),
    failed.length ? button("Next failed", nextFailed) : null);
  return { node, controls, draw, reveal };
}

/** Unfold as many levels as leave at most 300 rows. */
function traceFirstUnfolded(roots) {
  const unfolded = new Set();
  const queue = [...roots];
  let count = queue.length;
  for (const receipt of queue) { // grows while it is read
    if (!receipt.children.length) continue;
    count += receipt.children.length;
    if (count > TRACE_UNFOLDED) break;
    unfolded.add(receipt);
    for (const child of receipt.children) queue.push(child);
  }
  return unfolded;
}

/** List the receipts whose creators are all unfolded, each before what it created. */
function traceVisible(roots, unfolded) {
  const visible = [];
  const stack = [...roots].reverse();
  while (stack.length) {
    const receipt = stack.pop();
    visible.push(receipt);
    if (!unfolded.has(receipt)) continue;
    for (let at = receipt.children.length - 1; at >= 0; at--) stack.push(receipt.children[at]);
  }
  return visible;
}

function traceRoot(receipts, receipt) {
  let root = receipt;
  while (receipts[root.parent]) root = receipts[root.parent];
  return root;
}

// The details -----------------------------------------------------------------------------

function traceDetails(host, receipt, { failure, remedy, sections }, api, select) {
  const { label, receiver, mark, words, tone } = receipt;
  const open = (section) => el("details", { open: true }, el("summary", {}, section.title),
    section.items.map((item) => traceItem(item, api, select)));
  host.replaceChildren(
    el("h5", {}, `${label} on ${receiver}`),
    el("p", {}, el("strong", { class: `lk-badge lk-tone-${tone}` }, `${mark} ${words}`)),
    ...(failure ? [el("p", { class: "lk-trace-error" }, failure)] : []),
    ...(remedy ? [el("p", {}, `What to do: ${remedy}`)] : []),
    ...sections.map(open));
  host.scrollTop = 0;
}

function traceItem({ line, facts, json, note }, api, select) {
  const value = (one) => traceValue(one, api, select);
  return el("div", { class: "lk-item" },
    line ? el("div", {}, line.flatMap(value)) : null,
    note ? el("div", { class: "lk-muted" }, note) : null,
    facts?.length ? el("dl", {}, facts.flatMap(([name, one]) => [
      el("dt", {}, name), el("dd", {}, Array.isArray(one) ? traceList(one.map(value)) : value(one)),
    ])) : null,
    json === undefined ? null
      : el("div", { class: "lk-json" }, el("pre", {}, json), copyButton(json, "this text")));
}

function traceList(nodes) {
  return nodes.flatMap((node, index) => (index ? [", ", ...[node].flat()] : node));
}

/** Draw a text, an id, another receipt of the tree, or an amount with all digits on hover. */
function traceValue(value, api, select) {
  if (typeof value === "string") return value;
  if (value.at !== undefined) {
    const onclick = () => select(value.at);
    return el("button", { type: "button", class: "lk-link", onclick }, value.text);
  }
  if (value.kind === "receipt") return [el("code", {}, value.text), copyButton(value.text)];
  if (value.exact) {
    const amount = value.exact === value.text ? value.text
      : el("span", { class: "lk-amount", title: value.exact }, value.text);
    return value.id ? idLink(value.kind, value.id, amount, api) : amount;
  }
  if (value.id) return [idLink(value.kind, value.id, value.text, api), copyButton(value.id)];
  return value.text;
}

// The timeline ----------------------------------------------------------------------------

function traceSvg(tag, props, ...children) {
  return el(tag, { xmlns: "http://www.w3.org/2000/svg", ...props }, ...children);
}

/** Draw receipts by block and shard: each of up to 300, and counts of more. */
function traceTimeline(receipts, { shard, timeline }, select) {
  const { labels } = timeline;
  const share = Math.max(1, Math.ceil(labels.length / TRACE_COLUMNS));
  const columns = Math.max(1, Math.ceil(labels.length / share));
  const hasRun = receipts.every((receipt) => receipt.column >= 0);
  const cells = new Map();
  for (const receipt of receipts) {
    const x = receipt.column < 0 ? columns : Math.floor(receipt.column / share);
    const key = `${receipt.shard} ${x}`;
    if (!cells.has(key)) cells.set(key, { x, shard: receipt.shard, receipts: [] });
    cells.get(key).receipts.push(receipt);
  }
  const isSingle = receipts.length <= TRACE_ARROWS;
  const lanes = traceLanes(cells, shard.texts, isSingle);
  const pitch = isSingle ? 44 : 58;
  const left = (x) => TRACE_LANE_PX + x * pitch;
  const width = left(columns + (hasRun ? 0 : 1));
  const { height } = lanes;
  const box = new Map(); // of each receipt
  const draw = isSingle ? traceBoxes : traceTotals;
  const drawn = [...cells.values()].map(({ x, shard: lane, receipts: own }) =>
    draw(own, { x: left(x), ...lanes.top[lane] }, box, select));
  const axis = traceAxis(timeline, { share, columns, left, hasRun }, lanes);
  const marker = traceSvg("rect", { class: "lk-selected", visibility: "hidden", rx: 3 });
  const arrows = isSingle ? traceArrows(receipts, box) : null;
  const label = "Receipts by block and shard; the tree lists the same receipts";
  const picture = el("svg", { width, height, role: "img", "aria-label": label },
    axis, arrows, ...drawn.flat(), marker);
  const node = el("div", { class: "lk-timeline" }, picture);
  const mark = (at) => {
    const { x, y, w, h } = box.get(receipts[at]);
    const place = { x: x - 2, y: y - 2, width: w + 4, height: h + 4, visibility: "visible" };
    for (const [name, value] of Object.entries(place)) marker.setAttribute(name, String(value));
    if (x < node.scrollLeft + TRACE_LANE_PX || x + w > node.scrollLeft + node.clientWidth) {
      node.scrollLeft = x - node.clientWidth / 2;
    }
    if (y < node.scrollTop || y + h > node.scrollTop + node.clientHeight) {
      node.scrollTop = y - node.clientHeight / 2;
    }
  };
  return { node, mark };
}

/** Place the shards below each other, as high as their fullest cell needs. */
function traceLanes(cells, names, isSingle) {
  const most = names.map(() => 1);
  for (const { shard, receipts } of cells.values()) {
    most[shard] = Math.max(most[shard], isSingle ? receipts.length : 1);
  }
  const rank = (name) => Number(name.match(/\d+$/)?.[0] ?? Infinity);
  const order = names.map((_, at) => at).sort((a, b) => rank(names[a]) - rank(names[b]));
  const step = isSingle ? Math.max(5, Math.min(16, 600 / most.reduce((a, b) => a + b, 0))) : 24;
  const top = [];
  let height = 20; // below the names of blocks
  for (const at of order) {
    top[at] = { y: height + 4, step };
    height += Math.max(20, most[at] * step) + 8;
  }
  return { top, order, names, height };
}

function traceTitle(receipt) {
  const { label, receiver, words, gas } = receipt;
  return traceSvg("title", {}, `${label} on ${receiver}: ${words}${gas ? `, ${gas}` : ""}`);
}

/** Draw each receipt of a cell; a failed one has a cross, one that has not run is hollow. */
function traceBoxes(receipts, { x: left, y, step }, box, select) {
  return receipts.map((receipt, index) => {
    const [top, w, h] = [y + index * step, 22, step - 3];
    box.set(receipt, { x: left, y: top, w, h });
    return traceSvg("g", {
      class: `lk-box lk-tone-${receipt.tone}`, onclick: () => select(receipt.at),
    }, traceTitle(receipt), traceSvg("rect", { x: left, y: top, width: w, height: h, rx: 2 }),
    receipt.tone === "bad"
      ? traceSvg("text", { class: "lk-cross", x: left + w + 2, y: top + h / 2 + 5 }, "✗") : null);
  });
}

/** Draw the number of receipts in a cell, and how many of them failed. */
function traceTotals(receipts, { x, y }, box, select) {
  const failed = receipts.filter((receipt) => receipt.tone === "bad");
  const [w, h] = [54, 20];
  for (const receipt of receipts) box.set(receipt, { x, y, w, h });
  const text = `${receipts.length.toLocaleString("en")}${failed.length ? "✗" : ""}`;
  const words = `${receipts.length} receipts${failed.length ? `, ${failed.length} failed` : ""}`;
  const tone = failed.length ? "bad" : receipts[0].tone;
  return [traceSvg("g", {
    class: `lk-cell lk-tone-${tone}`, onclick: () => select((failed[0] ?? receipts[0]).at),
  }, traceSvg("title", {}, words), traceSvg("rect", { x, y, width: w, height: h, rx: 2 }),
  traceSvg("text", { x: x + w / 2, y: y + 14, "text-anchor": "middle" }, text))];
}

/** Draw a line from each creator to what it created. */
function traceArrows(receipts, box) {
  const lines = receipts.filter((receipt) => receipts[receipt.parent]).map((receipt) => {
    const from = box.get(receipts[receipt.parent]);
    const to = box.get(receipt);
    const [x, y] = [from.x + from.w, from.y + from.h / 2];
    const [end, middle] = [to.x, to.y + to.h / 2];
    if (end < x) return `M${from.x} ${y}h-4V${middle}h4l-3 -2v4l3 -2`; // in the same block
    const bend = (end - x) / 2;
    return `M${x} ${y}C${x + bend} ${y} ${end - bend} ${middle} ${end} ${middle}l-4 -2v4l4 -2`;
  });
  return traceSvg("path", { class: "lk-arrows", d: lines.join("") });
}

/** Name shards and blocks, and mark where blocks without receipts are left out. */
function traceAxis({ labels, skipped }, { share, columns, left, hasRun }, lanes) {
  const nodes = lanes.order.map((at) => traceSvg("text", {
    x: 0, y: lanes.top[at].y + 12,
  }, lanes.names[at]));
  const longest = labels.reduce((length, text) => Math.max(length, text.length), 1);
  const every = Math.ceil(longest / 7);
  for (let x = 0; x < columns; x += 1) {
    if (x % every === 0) {
      nodes.push(traceSvg("text", { x: left(x), y: 12 }, labels[x * share]));
    }
    const gap = skipped[x * share - 1];
    if (share > 1 || !gap) continue;
    const place = { x1: left(x) - 11, x2: left(x) - 11, y1: 18, y2: lanes.height, class: "lk-gap" };
    const words = `${gap.toLocaleString("en")} ${gap === 1 ? "block" : "blocks"} without receipts`;
    nodes.push(traceSvg("line", place, traceSvg("title", {}, words)));
  }
  if (!hasRun) {
    nodes.push(traceSvg("text", { x: left(columns), y: 12 }, "not run"));
  }
  return traceSvg("g", { class: "lk-axis" }, nodes);
}

// What moved ------------------------------------------------------------------------------

function traceMoved({ moved }, api) {
  const body = el("tbody", {});
  const add = (rows) => body.append(...rows.map(([account, change]) => el("tr", {},
    el("th", { scope: "row" }, account === null ? "unknown" : traceValue(account, api)),
    el("td", {}, traceValue(change, api)))));
  const head = el("tr", {},
    el("th", { scope: "col" }, "Account"), el("th", { scope: "col" }, "Balance change"));
  const more = el("button", { type: "button", class: "lk-small" }, "");
  const count = () => {
    const hidden = moved.total - body.rows.length;
    more.textContent = `Show more (${hidden.toLocaleString("en")} left)`;
    more.hidden = hidden <= 0;
  };
  more.addEventListener("click", async () => {
    more.disabled = true;
    const answer = await api.request({ do: "moved", at: body.rows.length });
    more.disabled = false;
    if (answer.error) more.after(el("p", { role: "alert" }, answer.error));
    else add(answer.rows);
    count();
  });
  add(moved.rows);
  count();
  return traceSection("What moved", "the sum of all transfers by account and asset", null,
    el("div", { class: "lk-moved", tabindex: "0", role: "group", "aria-label": "What moved" },
      el("table", {}, el("thead", {}, head), body), more));
}
