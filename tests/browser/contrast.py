"""The contrast of texts, as WCAG 2.2 defines it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Locator

# https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio; disabled controls are exempt (1.4.3). A text
# is drawn over the faces of all elements around it, and may be half transparent itself.
TOO_LOW = """host => {
  const linear = value => (value /= 255) <= .04045 ? value / 12.92 : ((value + .055) / 1.055) ** 2.4
  const light = ([r, g, b]) => .2126 * linear(r) + .7152 * linear(g) + .0722 * linear(b)
  const numbers = text => {
    const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number)
    return text.startsWith('color(srgb') ? [r * 255, g * 255, b * 255, a] : [r, g, b, a]
  }
  const over = (below, [r, g, b, a]) => [r, g, b].map((part, i) => part * a + below[i] * (1 - a))
  const around = node => {
    const all = []
    const outer = at => at.assignedSlot ?? at.parentElement ?? at.getRootNode().host
    for (let at = node; at; at = outer(at)) all.unshift(at)
    return all
  }
  const ratio = (node, pseudo) => {
    const all = around(node)
    const face = all.map(at => numbers(getComputedStyle(at).backgroundColor))
      .reduce(over, [255, 255, 255])
    const style = getComputedStyle(node, pseudo)
    const [r, g, b, a] = numbers(node.closest('svg') ? style.fill : style.color)
    const opacity = all.reduce((whole, at) => whole * getComputedStyle(at).opacity, a)
    const ink = over(face, [r, g, b, opacity])
    const [high, low] = [light(face), light(ink)].sort((x, y) => y - x)
    return (high + .05) / (low + .05)
  }
  const isSeen = node => node.getClientRects().length && !node.closest(':disabled, option')
  const nodes = [...host.querySelectorAll('*')].filter(isSeen)
  const texts = nodes.filter(node => [...node.childNodes].some(child =>
    child.nodeType === 3 && child.textContent.trim()))
  const fields = nodes.filter(node => node.matches('input, textarea, select'))
  const examples = fields.filter(node => node.placeholder && !node.value)
  const checked = [...texts, ...fields].map(node => [node, ratio(node)])
    .concat(examples.map(node => [node, ratio(node, '::placeholder')]))
  if (!checked.length) return ['nothing is visible']
  return checked.filter(([, value]) => !(value >= 4.5))
    .map(([node, value]) => `${value.toFixed(2)} ${node.outerHTML.slice(0, 200)}`)
}"""


def too_low(host: Locator) -> list[str]:
    """Return the visible texts of an element whose contrast is lower than 4.5:1."""
    result: list[str] = host.evaluate(TOO_LOW)
    return result
