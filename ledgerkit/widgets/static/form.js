// The form of a panel: its fields, password fields and buttons.

import { activeElement, el, uniqueId } from "./dom.js";

/** Draw a form. `api.send` sends a message to the kernel, with the texts of all fields. */
export function renderForm(state, api) {
  const inputs = new Map();
  const values = () => Object.fromEntries([...inputs].map(([name, read]) => [name, read()]));
  let pressed = null;
  const press = (button) => {
    pressed = JSON.stringify(values());
    // The kernel will answer with these texts, while somebody may be typing others already.
    for (const input of form.querySelectorAll("[data-field]")) {
      input.dataset.known = JSON.stringify(values()[input.dataset.field]);
    }
    api.send({ type: "press", button, values: values() });
  };
  const fields = state.fields.map((field) => drawField(field, inputs));
  const secrets = state.secrets.map((secret) => drawSecret(secret, api));
  const first = drawButton({ label: state.action, tooltip: state.tooltip }, "lk-primary");
  const others = state.buttons.map((button) => {
    const node = drawButton(button, "");
    node.addEventListener("click", () => press(button.name));
    return [button.name, node];
  });
  const stop = drawButton({ label: "Cancel", tooltip: "Stop waiting for the result" }, "");
  stop.addEventListener("click", () => api.send({ type: "cancel" }));
  const row = el("div", { class: "lk-buttons" }, first, others.map(([, node]) => node), stop);
  // While a request runs, Enter starts another one only if a text has changed since.
  const enter = (event) => {
    if (event.key !== "Enter" || !event.target.matches("input")) return;
    event.preventDefault();
    if (!first.disabled || JSON.stringify(values()) !== pressed) press(null);
  };
  const form = el("div", { class: "lk-form", role: "form", onkeydown: enter }, fields, secrets, row);
  first.addEventListener("click", () => press(null));
  // What another button would do was decided for the texts as they were.
  const changed = () => others.forEach(([, node]) => { node.disabled = true; });
  form.addEventListener("input", changed);
  form.hidden = !state.action;
  const parts = { form, first, stop, others, nFilled: state.n_filled, hadFocus: false };
  return { node: form, update: (next) => updateForm(next, parts) };
}

/** Show what the kernel changed; a text that somebody is typing stays. */
function updateForm(state, parts) {
  const { form, first, stop, others } = parts;
  parts.hadFocus ||= [first, stop].includes(activeElement(form)); // each loses it when disabled
  first.disabled = state.is_busy;
  stop.disabled = !state.is_busy;
  for (const [name, node] of others) {
    node.disabled = !state.buttons.find((button) => button.name === name)?.enabled;
  }
  for (const field of state.fields) {
    const input = form.querySelector(`[data-field="${field.name}"]`);
    const known = JSON.stringify(field.value);
    const isNew = input.dataset.known !== known || state.n_filled !== parts.nFilled;
    if (isNew) setValue(input, field);
    input.dataset.known = known;
  }
  parts.nFilled = state.n_filled;
  for (const secret of state.secrets) {
    form.querySelector(`[data-secret="${secret.name}"]`).placeholder = secret.example;
  }
  if (state.is_busy || !parts.hadFocus) return;
  parts.hadFocus = false;
  if ([null, document.body, first, stop, form.parentNode].includes(activeElement(form))) first.focus();
}

function setValue(input, field) {
  if (field.kind === "check") input.checked = field.value;
  else input.value = field.value;
}

function labelled(label, input, className) {
  input.id = uniqueId();
  return el("div", { class: className }, el("label", { for: input.id }, label), input);
}

function drawButton({ label, tooltip }, className) {
  return el("button", { type: "button", class: `lk-button ${className}`, title: tooltip }, label);
}

function drawField(field, inputs) {
  const props = { "data-field": field.name, "data-known": JSON.stringify(field.value) };
  const plain = { ...props, placeholder: field.example, spellcheck: "false", autocomplete: "off" };
  const input = {
    line: () => el("input", { ...plain, type: "text" }),
    lines: () => el("textarea", { ...plain, rows: 5 }),
    check: () => el("input", { ...props, type: "checkbox" }),
    choice: () => el("select", props, field.options.map(([label, value]) =>
      el("option", { value }, label))),
  }[field.kind]();
  setValue(input, field);
  inputs.set(field.name, () => (field.kind === "check" ? input.checked : input.value));
  return labelled(field.label, input, field.kind === "check" ? "lk-field lk-check" : "lk-field");
}

/** A password field, whose text is sent once and then removed from the page. */
function drawSecret(secret, api) {
  const input = el("input", {
    type: "password",
    "data-secret": secret.name,
    placeholder: secret.example,
    autocomplete: "off",
  });
  const enter = () => {
    if (input.value) api.send({ type: "secret", name: secret.name, text: input.value });
    input.value = "";
  };
  input.addEventListener("change", enter);
  input.addEventListener("keydown", (event) => event.key === "Enter" && enter());
  return labelled(secret.label, input, "lk-field");
}
