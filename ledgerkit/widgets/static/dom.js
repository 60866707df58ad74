// Elements, links to ids and copy buttons. Texts only ever become text nodes.

const SVG = "http://www.w3.org/2000/svg";

// Each widget of a page loads this module for itself, so a counter alone would repeat ids.
const OWN = Math.random().toString(36).slice(2);
let count = 0;

/** Return an id that no other element of the page has. */
export function uniqueId() {
  count += 1;
  return `lk-${OWN}-${count}`;
}

/** Create an element. Properties that begin with "on" are listeners, `class` and all else are
 *  attributes; false and null are left out. Children are elements or texts. */
export function el(tag, props = {}, ...children) {
  const node = tag === "svg" || props.xmlns === SVG
    ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === false || value === null || value === undefined || name === "xmlns") continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/** Hide a plain key from the page: in JupyterLab "a" adds a cell, and an arrow leaves this one. */
export function keepKey(event) {
  const isCommand = event.ctrlKey || event.metaKey || event.altKey;
  if (!isCommand && event.key !== "Escape") event.stopPropagation();
}

/** Return the element that has the focus; null, or the page's body, if none has. */
export function activeElement(node) {
  return node.getRootNode().activeElement;
}

/** Announce a short message to screen readers, beside the element that caused it. */
export function announce(node, message) {
  const note = el("span", { class: "lk-note", role: "status" }, message);
  node.after(note);
  setTimeout(() => note.remove(), 2000);
}

/** Copy a text to the clipboard; pages without access to it use a selection. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = el("textarea", { class: "lk-offscreen" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

/** Two sheets, drawn because not every font has a sign for it. */
function copyIcon() {
  const sheet = (x, y) => el("rect", { xmlns: SVG, x, y, width: 8, height: 8, rx: 1.5 });
  const look = { fill: "none", stroke: "currentColor", "stroke-width": 1.4 };
  return el("svg", { viewBox: "0 0 13 13", width: 12, height: 12, "aria-hidden": "true", ...look },
    sheet(1, 1), sheet(4, 4));
}

/** A button that copies a text, with all its digits. */
export function copyButton(text, what = text) {
  const copy = async (event) => {
    event.stopPropagation();
    const done = await copyText(text);
    announce(button, done ? "copied" : "copying is not allowed here");
  };
  const label = `Copy ${what}`;
  const props = { type: "button", class: "lk-copy", "aria-label": label, title: label };
  const button = el("button", { ...props, onclick: copy }, copyIcon());
  return button;
}

/** A link that opens the view of an account, token, transaction, receipt, block or key. */
export function idLink(kind, id, text, api) {
  const open = (event) => {
    event.preventDefault();
    event.stopPropagation();
    api.open(kind, id);
  };
  const props = { href: "#", class: "lk-id", title: `${kind} ${id}`, onclick: open };
  return el("a", props, text);
}

const FORBIDDEN = "script, iframe, object, embed, link, meta, base, form";
const SAFE_SOURCE = /^data:image\/(png|jpeg|gif|webp);base64,/;

/** Insert markup of the package. Its texts were escaped in the kernel; what could run or load
 *  something is removed here once more. */
export function insertHtml(host, html, api) {
  const template = document.createElement("template");
  template.innerHTML = html;
  for (const node of template.content.querySelectorAll(FORBIDDEN)) node.remove();
  for (const node of template.content.querySelectorAll("*")) {
    for (const { name, value } of [...node.attributes]) {
      const isSource = ["src", "srcset", "poster", "data", "background"].includes(name);
      const isLink = name === "href" || name === "xlink:href" || name === "action";
      const isSafe = isSource ? SAFE_SOURCE.test(value) : isLink ? value.startsWith("#") : true;
      if (name.startsWith("on") || !isSafe) node.removeAttribute(name);
    }
  }
  host.replaceChildren(template.content);
  for (const node of host.querySelectorAll("[data-kind][data-id]")) {
    const { kind, id } = node.dataset;
    node.replaceWith(idLink(kind, id, node.textContent, api), copyButton(id));
  }
  for (const node of host.querySelectorAll("[data-picture]")) {
    offerPicture(node, Boolean(api.request));
  }
}

/** A button that loads a picture from another host, which it names; none if a person chose it,
 *  who asked the kernel: whoever opens a saved notebook chose nothing. */
function offerPicture(node, hasKernel) {
  const { picture, alt, chosen } = node.dataset;
  const { protocol, hostname } = new URL(picture); // as the browser reads it
  if (protocol !== "https:") return;
  const isChosen = hasKernel && chosen !== undefined;
  const image = el("img", { src: isChosen ? picture : null, alt, referrerpolicy: "no-referrer" });
  if (isChosen) {
    node.replaceChildren(image);
    return;
  }
  const show = () => {
    image.src = picture;
    button.replaceWith(image);
  };
  const props = { type: "button", class: "lk-picture", onclick: show };
  const button = el("button", props, `Load picture from ${hostname}`);
  node.replaceChildren(button);
}
