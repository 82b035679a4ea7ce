// The script of the document in which pages and drawings of others are shown. It is no module: the
// server puts it into that document, whose policy runs only scripts that have its nonce, and this
// script gives the nonce to those of what is shown. Nobody else learns it, so nothing runs in a
// frame within the frame, where what is taken away here would be there again.
(() => {
  const self = document.currentScript;
  const nonce = self.nonce;
  const setNonce = Object.getOwnPropertyDescriptor(HTMLElement.prototype, "nonce").set;
  const makeFunction = Function;
  self.remove();

  const HANDLERS = ["onclick", "onchange", "oninput", "onsubmit", "onkeydown", "onkeyup"];
  const CLASSIC = /^(?:|(?:text|application)\/(?:java|ecma)script|module)$/i;

  // ---------------------------------------------------------------- what is taken away

  /** A name that scripts find in every window, and that says nothing here. */
  const hide = (owner, name) =>
    owner && Object.defineProperty(owner, name, { get: () => "", set: () => undefined });

  /** Take away what no policy forbids: WebRTC, which reaches other hosts, and ways to the nonce. */
  function takeAway() {
    for (const name of Object.getOwnPropertyNames(window))
      if (/RTC|^ReportingObserver$|^XSLTProcessor$/.test(name)) delete window[name];
    for (const kind of [HTMLElement, SVGElement, globalThis.MathMLElement])
      if (kind) hide(kind.prototype, "nonce");
    hide(globalThis.SecurityPolicyViolationEvent?.prototype, "originalPolicy");
    hide(globalThis.CSPViolationReportBody?.prototype, "originalPolicy");
  }

  /** Many pages keep something in the browser and end where they cannot: this forgets it all. */
  class Forgetful {
    #kept = new Map();
    get length() {
      return this.#kept.size;
    }
    key(index) {
      return [...this.#kept.keys()][index] ?? null;
    }
    getItem(name) {
      return this.#kept.get(String(name)) ?? null;
    }
    setItem(name, value) {
      this.#kept.set(String(name), String(value));
    }
    removeItem(name) {
      this.#kept.delete(String(name));
    }
    clear() {
      this.#kept.clear();
    }
  }

  // ---------------------------------------------------------------- what is shown

  /** A script that may run. */
  function makeScript(text) {
    const script = document.createElement("script"); // also in a drawing: it runs there too
    script.textContent = text;
    setNonce.call(script, nonce);
    return script;
  }

  /** The same script, which may run. */
  function allowScript(found) {
    const script = makeScript(found.textContent);
    for (const { name, value } of found.attributes)
      if (name !== "nonce") script.setAttribute(name, value);
    return script;
  }

  /** Handlers that are written as attributes need a function: the policy refuses their text. */
  function moveHandlers(element) {
    for (const name of element.getAttributeNames()) {
      if (!name.startsWith("on") || !(name in element)) continue;
      const code = element.getAttribute(name);
      element.removeAttribute(name);
      try {
        element[name] = makeFunction(
          "event",
          `with (document) with (this.form ?? {}) with (this) { ${code}\n}`,
        );
      } catch (error) {
        console.error(error);
      }
    }
  }

  function moveAllHandlers(root) {
    if (root.nodeType !== Node.ELEMENT_NODE) return;
    moveHandlers(root);
    for (const element of root.querySelectorAll("*")) moveHandlers(element);
  }

  /** Forms are sent nowhere, but what a page does with them itself works. */
  function submitForm(event) {
    const button = event.target.closest?.("button, input");
    const form = button?.form;
    if (!form || event.defaultPrevented || !["submit", "image"].includes(button.type)) return;
    event.preventDefault();
    if (!form.noValidate && !button.formNoValidate && !form.reportValidity()) return;
    form.dispatchEvent(
      new SubmitEvent("submit", { bubbles: true, cancelable: true, submitter: button }),
    );
  }

  /** What a page needs that was made for a window of its own, and no way out of this one. */
  function prepareWindow() {
    takeAway();
    for (const name of ["localStorage", "sessionStorage"])
      Object.defineProperty(window, name, { value: new Forgetful() });
    addEventListener("click", submitForm);
    new MutationObserver((changes) => {
      for (const { type, target, addedNodes } of changes)
        if (type === "attributes") moveHandlers(target);
        else addedNodes.forEach(moveAllHandlers);
    }).observe(document, { childList: true, subtree: true, attributeFilter: HANDLERS });
  }

  /** Show a page. Its scripts run in their order, and then it is told that it is loaded. */
  function showPage(text) {
    const page = document.adoptNode(
      new DOMParser().parseFromString(text, "text/html").documentElement,
    );
    const scripts = [...page.querySelectorAll("script")]
      .filter((found) => CLASSIC.test(found.type ?? found.getAttribute("type") ?? ""))
      .map((found) => [found, allowScript(found)]);
    moveAllHandlers(page);
    prepareWindow();
    document.documentElement.replaceWith(page);
    for (const [found, script] of scripts) found.replaceWith(script);
    document.dispatchEvent(new Event("DOMContentLoaded", { bubbles: true }));
    dispatchEvent(new Event("load"));
    dispatchEvent(new Event("pageshow"));
  }

  /** Show a React component. All that has the nonce is made before anything of it runs. */
  function showComponent(component, libraries) {
    for (const library of libraries) document.head.append(makeScript(library));
    const script = makeScript(globalThis.prepareComponent(component));
    prepareWindow();
    document.head.append(script);
  }

  /** Draw diagrams with Mermaid, which writes inline styles: one after another, as SVG. */
  function drawDiagrams(library, port) {
    document.head.append(makeScript(library));
    takeAway();
    let before = Promise.resolve();
    port.onmessage = ({ data: { id, source, dark } }) => {
      before = before
        .then(() => drawDiagram(source, dark))
        .then(
          (picture) => port.postMessage({ id, ...picture }),
          (error) => port.postMessage({ id, problem: String(error?.message ?? error) }),
        );
    };
  }

  let drawn = 0;

  async function drawDiagram(source, dark) {
    mermaid.initialize({
      startOnLoad: false,
      securityLevel: "strict",
      suppressErrorRendering: true,
      htmlLabels: false,
      flowchart: { htmlLabels: false },
      theme: dark ? "dark" : "neutral",
      themeVariables: { dropShadow: "none", ...(dark && { edgeLabelBackground: "#1b201e" }) },
      fontFamily: "system-ui, sans-serif",
    });
    drawn += 1;
    const { svg } = await mermaid.render(`diagram-${drawn}`, source);
    return describeDrawing(new DOMParser().parseFromString(svg, "text/html").querySelector("svg"));
  }

  /** An SVG with its size, as a picture needs it, and the words that it says about itself. */
  function describeDrawing(root) {
    const [, , width, height] = (root.getAttribute("viewBox") ?? "").split(/[\s,]+/).map(Number);
    if (width > 0 && height > 0) {
      root.setAttribute("width", Math.ceil(width));
      root.setAttribute("height", Math.ceil(height));
    }
    root.removeAttribute("style");
    const words = [":scope > title", ":scope > desc"]
      .map((name) => root.querySelector(name)?.textContent.trim())
      .filter(Boolean);
    return { svg: new XMLSerializer().serializeToString(root), words: words.join(": ") };
  }

  addEventListener(
    "message",
    (event) => {
      if (event.source !== parent) return;
      const { page, library, component, libraries } = event.data;
      if (library) drawDiagrams(library, event.ports[0]);
      else if (component) showComponent(component, libraries);
      else showPage(String(page));
    },
    { once: true },
  );
})();
