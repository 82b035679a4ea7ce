// Compiles a React component and shows it, in the frame of document.js, which loads this script and
// component-tools.js only then. It is no module: nothing can be imported there.
(() => {
  const { modules, originalPositionFor, TraceMap, transform } = globalThis.componentTools;
  const react = modules.react;
  const SOURCE = "deskhand-component.js"; // what the compiled code is called in stacks
  const LINES_BEFORE = 1; // of the compiled code, in its script
  const STYLE = `
:where(body) { margin: 16px; font: 15px/1.5 system-ui, sans-serif; color: #1b211e; background: #fff; }
:where(h1, h2, h3, h4) { margin: 0 0 0.5em; line-height: 1.25; }
:where(p, ul, ol, form, table, pre) { margin: 0 0 1em; }
:where(button, input, select, textarea) { font: inherit; padding: 4px 10px; border-radius: 6px; }
:where(button) { border: 1px solid #b9c2bd; background: #f1f4f2; color: inherit; cursor: pointer; }
:where(button:hover) { background: #e4eae6; }
:where(input:not([type="range"]), select, textarea) { border: 1px solid #b9c2bd; background: #fff; }
:where(table) { border-collapse: collapse; }
:where(th, td) { padding: 4px 10px; border: 1px solid #d8dedb; text-align: start; }
:where(img, svg, video) { max-width: 100%; }
:where(a) { color: #0b6b58; }
#component-problem { margin: 0 0 16px; padding: 12px 16px; border: 1px solid #c9a0a0; border-radius: 8px; background: #fdf3f3; color: #6d1f1f; font: 14px/1.5 system-ui, sans-serif; }
#component-note { font: 12px/1.5 system-ui, sans-serif; color: #5d6963; }
#component-problem b { display: block; }
#component-problem pre { margin: 8px 0 0; overflow: auto; font: 13px/1.5 ui-monospace, monospace; }`;

  let wanted; // what is shown: its text and name, and the words for what can go wrong
  let map; // from the compiled code to the text
  let root;
  let started = false;
  const skipped = []; // style sheets, which are not there

  const fillIn = (text, values) => text.replace(/\{(\w+)\}/g, (mark, name) => values[name] ?? mark);

  // ---------------------------------------------------------------- what went wrong

  /** The line with what is around it, and a mark below the column. */
  function quoteSource({ line, column }) {
    const lines = wanted.text.split("\n");
    const first = Math.max(0, line - 3);
    const width = String(line).length + 2;
    const quoted = lines
      .slice(first, line)
      .map((words, i) => `${String(first + i + 1).padStart(width - 2)}  ${words.slice(0, 200)}`);
    return [...quoted, `${" ".repeat(width + Math.min(column, 200) - 1)}^`].join("\n");
  }

  /** Say it above the component. `place` has the line and the column, both from 1. */
  function showProblem(title, message, place) {
    document.getElementById("component-problem")?.remove();
    const box = document.createElement("div");
    box.id = "component-problem";
    box.setAttribute("role", "alert");
    const heading = document.createElement("b");
    heading.textContent = title;
    const words = document.createElement("div");
    words.textContent = message;
    box.append(heading, words);
    if (place) {
      const where = document.createElement("div");
      where.textContent = fillIn(wanted.words.place, place);
      const source = document.createElement("pre");
      source.textContent = quoteSource(place);
      box.append(where, source);
    }
    document.body.prepend(box);
  }

  /** Where this place of the compiled code is in the text. */
  function findPlace(line, column) {
    const from = { line: line - LINES_BEFORE, column: Math.max(0, column - 1) };
    if (!map || from.line < 1) return null;
    const found = originalPositionFor(map, from);
    return found.line ? { line: found.line, column: found.column + 1 } : null;
  }

  function showError(error, event) {
    const inStack = new RegExp(`${SOURCE}:(\\d+):(\\d+)`).exec(error?.stack ?? "");
    const [line, column] = inStack ? inStack.slice(1).map(Number) : [event?.lineno, event?.colno];
    const title = started ? wanted.words.failed : wanted.words.notCompiled;
    const message = String(error?.message ?? error).replace(
      /^Failed to execute 'append' [^:]*: /,
      "",
    );
    showProblem(title, message, line ? findPlace(line, column) : null);
  }

  /** Keeps the rest of the page when drawing fails, and says why. */
  class Boundary extends react.Component {
    static getDerivedStateFromError() {
      return { failed: true };
    }
    componentDidCatch(error) {
      showError(error);
    }
    render() {
      return this.state.failed ? null : this.props.children;
    }
  }

  // ---------------------------------------------------------------- what is run

  /** What a component gets when it imports a module. Throws where there is none of this name. */
  function requireModule(name) {
    if (Object.hasOwn(modules, name)) return modules[name];
    if (/\.(?:css|scss|sass|less)$/.test(name)) {
      skipped.push(name);
      return {};
    }
    const known = ["react", "react-dom", "react-dom/client"].join(", ");
    throw new Error(fillIn(wanted.words.noModule, { module: name, modules: known }));
  }

  function runComponent(run) {
    started = true;
    delete globalThis.runComponent;
    const module = { exports: {} };
    try {
      run(requireModule, module, module.exports);
      showExport(module.exports.default);
    } catch (error) {
      showError(error);
    }
    if (skipped.length) {
      const note = Object.assign(document.createElement("p"), { id: "component-note" });
      note.textContent = fillIn(wanted.words.skipped, { files: skipped.join(", ") });
      document.body.append(note);
    }
  }

  function showExport(shown) {
    if (shown === undefined && root.childNodes.length) return; // it has drawn itself
    if (shown === undefined) {
      showProblem(wanted.words.nothing, wanted.words.noDefault, null);
      return;
    }
    const element = typeof shown === "function" ? react.createElement(shown) : shown;
    modules["react-dom/client"]
      .createRoot(root)
      .render(react.createElement(Boundary, null, element));
  }

  /**
   * Compile a component and make the page ready for it. Returns the script that shows it, or "" where
   * it could not be compiled, which the page then says.
   */
  globalThis.prepareComponent = (component) => {
    wanted = component;
    delete globalThis.prepareComponent;
    document.title = wanted.name;
    const style = document.createElement("style");
    style.textContent = STYLE;
    document.head.append(style);
    root = Object.assign(document.createElement("div"), { id: "root" });
    document.body.append(root);
    let compiled;
    try {
      compiled = transform(wanted.text, {
        transforms: ["jsx", "imports", ...(/\.tsx$/i.test(wanted.name) ? ["typescript"] : [])],
        jsxRuntime: "automatic",
        production: true,
        disableESTransforms: true,
        filePath: SOURCE,
        sourceMapOptions: { compiledFilename: SOURCE },
      });
    } catch (error) {
      const message = error.message
        .replace(`Error transforming ${SOURCE}: `, "")
        .replace(/ \(\d+:\d+\)$/, "");
      showProblem(wanted.words.notCompiled, message, error.loc ?? null);
      return "";
    }
    map = new TraceMap(compiled.sourceMap);
    Object.assign(globalThis, { React: react, ReactDOM: modules["react-dom"], runComponent });
    addEventListener("error", (event) => {
      if (event.error) showError(event.error, event);
    });
    addEventListener("unhandledrejection", (event) => showError(event.reason));
    return `runComponent((require, module, exports) => {\n${compiled.code}\n});\n//# sourceURL=${SOURCE}`;
  };
})();
