// What the frame of a component needs: a compiler, and the modules that a component may import.
// `scripts/bundle_component.py` makes `vendor/component-tools.js` of it.

import { originalPositionFor, TraceMap } from "@jridgewell/trace-mapping";
import * as compat from "preact/compat";
import * as client from "preact/compat/client";
import * as runtime from "preact/compat/jsx-runtime";
import { transform } from "sucrase";

const modules = {
  react: compat,
  "react-dom": compat,
  "react-dom/client": client,
  "react/jsx-runtime": runtime,
};

export { modules, originalPositionFor, TraceMap, transform };
