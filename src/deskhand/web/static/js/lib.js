// The one place that names what is vendored for drawing: Preact, its hooks, signals, and htm.

import htm from "../vendor/htm.js";
import { Fragment, h, render } from "../vendor/preact.js";

export { useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/preact-hooks.js";
export { batch, computed, effect, signal } from "../vendor/signals.js";
export { Fragment, render };
export const html = htm.bind(h);
