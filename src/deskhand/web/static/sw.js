// Keeps the files of the page, never anybody's data: with the server away, the page opens and shows what it kept itself.
const SHELL = "deskhand-shell-1";
const ours = (url) =>
  url.origin === location.origin &&
  (url.pathname === "/" ||
    /^\/(js|css|vendor)\/|^\/(icon\.svg|app\.webmanifest)$/.test(url.pathname));

self.addEventListener("install", (event) =>
  event.waitUntil(
    caches
      .open(SHELL)
      .then((cache) => cache.add("/"))
      .then(() => self.skipWaiting()),
  ),
);
self.addEventListener("activate", (event) =>
  event.waitUntil(clean().then(() => self.clients.claim())),
);

async function clean() {
  for (const name of await caches.keys()) if (name !== SHELL) await caches.delete(name);
}

// What was loaded before this worker was there, the page names.
self.addEventListener("message", (event) => {
  const paths = (event.data?.keep ?? []).filter((path) => ours(new URL(path, location.origin)));
  event.waitUntil(
    caches
      .open(SHELL)
      .then((cache) => Promise.all(paths.map((path) => cache.add(path).catch(() => undefined)))),
  );
});

self.addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  if (event.request.method !== "GET" || !ours(url)) return;
  event.respondWith(fresh(event.request));
});

/** From the server, so that a new version is there at once; from what is kept where the server is not. */
async function fresh(request) {
  const cache = await caches.open(SHELL);
  try {
    const answer = await fetch(request);
    if (answer.ok) await cache.put(request, answer.clone());
    return answer;
  } catch (error) {
    const known = await cache.match(request, { ignoreSearch: true });
    if (known) return known;
    throw error;
  }
}
