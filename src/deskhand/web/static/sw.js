// Caches the files of the page, never anybody's data: with the server away, the page still opens
// and shows what it has stored itself. Shows notifications (webpush/notices.py).
const SHELL = "deskhand-shell-1";
const SHARED = "deskhand-shared"; // what another app has shared, until the page has asked about it
const isShellFile = (url) =>
  url.origin === location.origin &&
  (url.pathname === "/" ||
    /^\/(js|css|vendor|languages)\/|^\/(icon\.svg|app\.webmanifest)$/.test(url.pathname));

self.addEventListener("install", (event) =>
  event.waitUntil(
    caches
      .open(SHELL)
      .then((cache) => cache.add("/"))
      .then(() => self.skipWaiting()),
  ),
);
self.addEventListener("activate", (event) =>
  event.waitUntil(deleteOldCaches().then(() => self.clients.claim())),
);

async function deleteOldCaches() {
  for (const name of await caches.keys())
    if (![SHELL, SHARED].includes(name)) await caches.delete(name);
}

// The page names the files that it loaded before this worker existed.
self.addEventListener("message", (event) => {
  const paths = (event.data?.keep ?? []).filter((path) =>
    isShellFile(new URL(path, location.origin)),
  );
  event.waitUntil(
    caches
      .open(SHELL)
      .then((cache) => Promise.all(paths.map((path) => cache.add(path).catch(() => undefined)))),
  );
});

self.addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  if (event.request.method === "POST" && url.href === `${location.origin}/shared`)
    event.respondWith(keepShared(event.request));
  if (event.request.method !== "GET" || !isShellFile(url)) return;
  event.respondWith(fetchFresh(event.request));
});

/** From the server, so that a new version shows at once; without the server, from the cache. */
async function fetchFresh(request) {
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

/** Keep what an app has shared, and open the page, which asks what is to become of it. */
async function keepShared(request) {
  const form = await request.formData();
  const text = ["title", "text", "url"].map((name) => form.get(name)).filter(Boolean);
  const files = form.getAll("files").filter((file) => file.size);
  await caches.delete(SHARED);
  const cache = await caches.open(SHARED);
  await Promise.all(files.map((file, i) => cache.put(`/shared/${i}`, new Response(file))));
  const names = files.map(({ name, type }) => ({ name, type }));
  await cache.put("/shared", Response.json({ text: text.join("\n"), files: names }));
  return Response.redirect("/#/", 303);
}

self.addEventListener("push", (event) => event.waitUntil(showNotice(event.data.json())));

async function showNotice({ title, body, tag, hash, at }) {
  if (await isWatched()) return;
  await self.registration.showNotification(title, {
    body,
    tag,
    icon: "/icon-192.png",
    timestamp: at * 1000,
    data: { hash },
  });
}

/** Whether somebody looks at the page. Safari asks for a notification even then. */
async function isWatched() {
  if (!/Chrome|Firefox/.test(navigator.userAgent)) return false;
  const pages = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  return pages.some((page) => page.focused);
}

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(openPage(event.notification.data.hash));
});

async function openPage(hash) {
  const [page] = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  if (!page) return self.clients.openWindow(`/${hash}`);
  page.postMessage({ open: hash });
  return page.focus();
}
