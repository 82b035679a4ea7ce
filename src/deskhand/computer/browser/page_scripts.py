"""What is run inside of pages, in a world of its own, where nothing that it calls is the page's.
Each is a function whose `this` is a node."""

from __future__ import annotations

FIND_POINT = """function () {
  const node = this.nodeType === 1 ? this : this.parentElement
  const view = node.ownerDocument.defaultView
  const box = node.getBoundingClientRect()
  const rects = [...node.getClientRects()].filter(r => r.width > 0 && r.height > 0)
  if (!rects.length) return {hidden: true}
  const r = rects[0]
  const left = Math.max(r.left, 0), right = Math.min(r.right, view.innerWidth)
  const top = Math.max(r.top, 0), bottom = Math.min(r.bottom, view.innerHeight)
  if (right <= left || bottom <= top) return {hidden: true}
  const x = (left + right) / 2, y = (top + bottom) / 2
  let hit = node.ownerDocument.elementFromPoint(x, y)
  while (hit && hit.shadowRoot) {
    const inner = hit.shadowRoot.elementFromPoint(x, y)
    if (!inner || inner === hit) break
    hit = inner
  }
  const holds = (outer, one) => {
    for (let each = one; each; each = each.parentNode || each.host) if (each === outer) return true
    return false
  }
  const labels = [...(node.labels || [])]
  const fits = !hit || holds(node, hit) || holds(hit, node) || labels.some(l => holds(l, hit)) ||
    (node.getRootNode() !== node.ownerDocument && hit === node.getRootNode().host)
  let cover = ''
  if (!fits) {
    const named = hit.closest('[role=dialog],dialog,[aria-label],[id]') || hit
    cover = (named.getAttribute('aria-label') || named.innerText || named.id || named.tagName)
    cover = cover.trim().slice(0, 80) || named.tagName.toLowerCase()
  }
  return {x: x - box.left, y: y - box.top, cover, disabled: !!node.disabled}
}"""

SET_VALUE = """function (wanted) {
  const node = this
  const kind = Object.getPrototypeOf(node)
  const field = Object.getOwnPropertyDescriptor(kind, 'value')
  node.focus()
  if (field && field.set) field.set.call(node, wanted); else node.value = wanted
  node.dispatchEvent(new Event('input', {bubbles: true, composed: true}))
  node.dispatchEvent(new Event('change', {bubbles: true}))
  return String(node.value)
}"""

SELECT_OPTIONS = """function (wanted) {
  const node = this.tagName === 'OPTION' ? this.closest('select') : this
  if (node.tagName !== 'SELECT') return {none: true}
  const plain = text => text.trim().toLowerCase()
  const options = [...node.options]
  const found = wanted.map(each => options.find(o => plain(o.label) === plain(each)) ||
    options.find(o => plain(o.value) === plain(each)))
  if (found.includes(undefined)) return {missing: options.map(o => o.label).slice(0, 60)}
  if (!node.multiple && found.length > 1) return {single: true}
  for (const option of options) option.selected = found.includes(option)
  node.dispatchEvent(new Event('input', {bubbles: true}))
  node.dispatchEvent(new Event('change', {bubbles: true}))
  return {selected: [...node.selectedOptions].map(o => o.label)}
}"""

READ_WORDS = "function () { return (this.innerText || this.textContent || '').slice(0, 400) }"

CLICK = "function () { this.focus && this.focus(); this.click() }"

SELECT_ALL = """function () {
  if (this.select) { this.focus(); this.select(); return }
  this.focus()
  this.ownerDocument.getSelection().selectAllChildren(this)
}"""
