// Loaded into OpenClaw before anything else: what is meant for Telegram goes to the server in talk_openclaw.mjs, and nothing
// leaves this machine.
const real = globalThis.fetch;
const meant = "https://api.telegram.org/";
globalThis.fetch = async (asked, init) => {
  const url = typeof asked === "string" ? asked : (asked.url ?? String(asked));
  if (url.startsWith(meant)) return real(process.env.TELEGRAM_URL + url.slice(meant.length), init);
  if (!/^http:\/\/(127\.0\.0\.1|localhost)[:/]/.test(url)) throw new TypeError("fetch failed: no network");
  return real(asked, init);
};
