// Talks to the API: one function for questions and changes, one for streams.

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

/** `heard(status)` is called with the status of each answer; 0 where none came. */
export function onAnswer(heard) {
  listeners.add(heard);
}

/** Ask. `body` is sent as JSON; a Blob or FormData goes as it is. Throws ApiError. */
export async function call(method, path, body = undefined) {
  const headers = method === "GET" ? {} : { "X-Deskhand": "1" };
  const raw = body instanceof Blob || body instanceof FormData;
  if (body !== undefined && !raw) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, {
      method,
      headers,
      body: body === undefined || raw ? body : JSON.stringify(body),
    });
  } catch {
    tell(0);
    throw new ApiError(
      0,
      "offline",
      "Deskhand is not reached. Is it running on your machine? Start it with: deskhand serve",
    );
  }
  tell(answer.status);
  if (answer.ok) return answer.status === 204 ? null : await answer.json();
  let said = {};
  try {
    said = (await answer.json()).error ?? {};
  } catch {
    /* no JSON: the status must do */
  }
  throw new ApiError(
    answer.status,
    said.code ?? "",
    said.message ?? `The server answered ${answer.status}.`,
    said.request_id,
  );
}

function tell(status) {
  for (const heard of listeners) heard(status);
}

export const get = (path) => call("GET", path);
export const post = (path, body = {}) => call("POST", path, body);

/** The path of a conversation, or of something beneath it. */
export const at = (name, rest = "") => `/api/sessions/${encodeURIComponent(name)}${rest}`;

/**
 * Follow a stream for ever: the browser resumes by Last-Event-ID; where it gives up, this asks again, at most every 4 s.
 * `path(after)` is the address. Returns a function that ends it.
 */
export function follow(path, on) {
  let source,
    timer,
    ended = false,
    tries = 0;
  const open = () => {
    source = new EventSource(path());
    source.onopen = () => {
      tries = 0;
      on.state?.("open");
    };
    for (const kind of ["recorded", "progress", "closed"])
      source.addEventListener(kind, (event) => on[kind]?.(JSON.parse(event.data)));
    source.onerror = () => {
      on.state?.("lost");
      source.close(); // the address then says what is missing; the browser's own way would wait longer
      if (!ended) timer = setTimeout(open, Math.min(4000, 250 * 2 ** tries++));
    };
  };
  open();
  return {
    close() {
      ended = true;
      clearTimeout(timer);
      source.close();
    },
    now() {
      if (source.readyState === 2 && !ended) {
        clearTimeout(timer);
        tries = 0;
        open();
      }
    },
  };
}

/** A name that nobody else will take. */
export function fresh(prefix = "") {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return prefix + Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
