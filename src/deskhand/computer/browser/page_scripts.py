"""What is run inside of pages, in a world of its own, where nothing that it calls is the page's.
Each is a function whose `this` is a node, but for READ_STORAGE."""

from __future__ import annotations

FIND_POINT = """function () {
  const node = this.nodeType === 1 ? this : this.parentElement
  const page = node.ownerDocument
  const view = page.defaultView
  const box = node.getBoundingClientRect()
  const holds = (outer, one) => {
    for (let each = one; each; each = each.parentNode || each.host) if (each === outer) return true
    return false
  }
  const hitAt = (x, y) => {
    let hit = page.elementFromPoint(x, y)
    while (hit && hit.shadowRoot) {
      const inner = hit.shadowRoot.elementFromPoint(x, y)
      if (!inner || inner === hit) break
      hit = inner
    }
    return hit
  }
  const middle = one => {
    for (const r of one.getClientRects()) {
      const left = Math.max(r.left, 0), right = Math.min(r.right, view.innerWidth)
      const top = Math.max(r.top, 0), bottom = Math.min(r.bottom, view.innerHeight)
      if (right > left && bottom > top) return [(left + right) / 2, (top + bottom) / 2]
    }
    return null
  }
  const root = node.getRootNode()
  const labels = [...(node.labels || [])]
  let cover = null
  let seen = false
  for (const one of [node, ...labels]) {
    const point = middle(one)
    if (!point) continue
    seen = true
    const [x, y] = point
    const hit = hitAt(x, y)
    const fits = !hit || holds(one, hit) || (root !== page && hit === root.host) ||
      labels.some(l => holds(l, hit)) || (holds(hit, one) && !hit.contains(page.body) &&
      one.getBoundingClientRect().width > 2 && hit.getRootNode() === root)
    if (fits) return {x: x - box.left, y: y - box.top, disabled: !!node.disabled}
    cover = cover || hit
  }
  if (!seen) return {hidden: true}
  const named = cover.closest('[role=dialog],dialog,[aria-label],[id]') || cover
  const words = named.getAttribute('aria-label') || named.innerText || named.id || ''
  return {cover: words.trim().slice(0, 80) || named.tagName.toLowerCase()}
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

PUT_TEXT = """function (wanted, keep) {
  const node = this
  node.focus()
  if (node.isContentEditable) {
    const chosen = node.ownerDocument.getSelection()
    chosen.selectAllChildren(node)
    if (keep) chosen.collapseToEnd()
    return node.ownerDocument.execCommand('insertText', false, wanted)
  }
  const field = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(node), 'value')
  const text = keep ? node.value + wanted : wanted
  if (field && field.set) field.set.call(node, text); else node.value = text
  node.dispatchEvent(new Event('input', {bubbles: true, composed: true}))
  node.dispatchEvent(new Event('change', {bubbles: true}))
  return true
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

READ_WORDS = """function () {
  const cut = text => (text || '').slice(0, 400)
  return this.isConnected ? [cut(this.innerText), cut(this.textContent)] : null
}"""

CLICK = "function () { this.focus && this.focus(); this.click() }"

SELECT_ALL = """function () {
  if (this.select) { this.focus(); this.select(); return }
  this.focus()
  this.ownerDocument.getSelection().selectAllChildren(this)
}"""

READ_STORAGE = """(() => {
  try { return JSON.stringify([location.origin, {...localStorage}]) } catch { return '' }
})()"""
"""An expression: the origin of the page, and what it keeps for that; '' where it may keep
nothing."""
