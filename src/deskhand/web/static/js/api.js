// Calls the API: one function for requests, one for event streams.

import { serverTexts, t, tServer } from "./language.js";

/** What went wrong, as a sentence. `status` 0: the server was not reached. */
export class ApiError extends Error {
  constructor(status, code, message, requestId = "") {
    super(message);
    Object.assign(this, { status, code, requestId });
  }

  get missing() {
    return this.status === 404 || this.status === 405 || this.status === 501;
  }
}

const listeners = new Set();

/** `listener(status)` is called with the status of each response; 0 where there was none. */
export function onResponse(listener) {
  listeners.add(listener);
}

/** Send a request. `body` is sent as JSON; a Blob or FormData as it is. Throws ApiError. */
export async function call(method, path, body = undefined) {
  const answer = await request(method, path, body);
  return answer.status === 204 ? null : await answer.json();
}

/** The Blob at this path, or for this body. Throws ApiError, and AbortError once `signal` is aborted. */
export async function fetchBlob(path, signal = undefined, body = undefined) {
  const answer = await request(body ? "POST" : "GET", path, body, signal);
  return answer.blob();
}

async function request(method, path, body, signal) {
  const headers = method === "GET" ? {} : { "X-Deskhand": "1" };
  const raw = body instanceof Blob || body instanceof FormData;
  if (body !== undefined && !raw) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, {
      method,
      headers,
      body: body === undefined || raw ? body : JSON.stringify(body),
      signal,
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    notifyListeners(0);
    throw new ApiError(
      0,
      "offline",
      t("Deskhand is not reached. Is it running on your machine? Start it with: deskhand serve"),
    );
  }
  notifyListeners(answer.status);
  if (answer.ok) return answer;
  let problem = {};
  try {
    problem = (await answer.json()).error ?? {};
  } catch {
    /* no JSON: only the status is known */
  }
  await serverTexts;
  throw new ApiError(
    answer.status,
    problem.code ?? "",
    tServer(problem.message) ?? t("The server answered {status}.", { status: answer.status }),
    problem.request_id,
  );
}

function notifyListeners(status) {
  for (const listener of listeners) listener(status);
}

export const get = (path) => call("GET", path);
export const post = (path, body = {}) => call("POST", path, body);

/** The path of a conversation, or of something beneath it. */
export const sessionPath = (name, rest = "") => `/api/sessions/${encodeURIComponent(name)}${rest}`;

/**
 * Follow an event stream until it is closed. The browser resumes it by Last-Event-ID; where the
 * browser gives up, this connects again, at least every 4 s. `path()` is the address. Returns
 * `{close, reconnectNow}`.
 */
export function followStream(path, handlers) {
  let source;
  let timer;
  let ended = false;
  let tries = 0;
  const open = () => {
    source = new EventSource(path());
    source.onopen = () => {
      tries = 0;
      handlers.state?.("open");
    };
    for (const kind of ["recorded", "progress", "closed"])
      source.addEventListener(kind, (event) => handlers[kind]?.(JSON.parse(event.data)));
    source.onerror = () => {
      handlers.state?.("lost");
      source.close(); // connecting again is faster than the browser's own retry
      if (ended) return;
      timer = setTimeout(open, Math.min(4000, 250 * 2 ** tries));
      tries += 1;
    };
  };
  open();
  return {
    close() {
      ended = true;
      clearTimeout(timer);
      source.close();
    },
    reconnectNow() {
      if (source.readyState === EventSource.CLOSED && !ended) {
        clearTimeout(timer);
        tries = 0;
        open();
      }
    },
  };
}

/** A random id. */
export function newId(prefix = "") {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return prefix + Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
