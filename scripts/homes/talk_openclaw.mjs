// Makes a home of OpenClaw by running it: its gateway, with its Telegram channel (which meets a server in this file), its
// agent, sessions, crons and pairing. talk_openclaw.mjs ENTRY, with MODEL_URL and OWN_PORT.
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { homedir } from "node:os";

const entry = process.argv[2];
const port = Number(process.env.OWN_PORT);
const state = `${homedir()}/.openclaw`;
const away = new URL("./openclaw_away.mjs", import.meta.url).pathname;
const env = {
  ...process.env,
  NODE_OPTIONS: `--import ${away}`,
  TELEGRAM_URL: `http://127.0.0.1:${port}/`,
  OPENCLAW_NO_RESPAWN: "1",
  OPENCLAW_SKIP_BROWSER_CONTROL_SERVER: "1",
  OPENCLAW_SKIP_CANVAS_HOST: "1",
  OPENCLAW_SKIP_GMAIL_WATCHER: "1",
  OPENCLAW_DISABLE_BONJOUR: "1",
};
const rest = (ms) => new Promise((done) => setTimeout(done, ms));

async function run(...words) {
  const command = spawn(process.execPath, [entry, ...words], { env, stdio: ["ignore", "pipe", "pipe"], timeout: 120_000 });
  const out = { stdout: "", stderr: "" };
  for (const pipe of ["stdout", "stderr"]) command[pipe].on("data", (piece) => (out[pipe] += piece));
  const status = await new Promise((done) => command.on("close", done));
  if (status !== 0) throw new Error(`${words[0]}: ${out.stdout}${out.stderr}`);
  return out.stdout;
}

// What Telegram would say.
const waiting = []; // updates that were not asked for yet
const sent = []; // texts of the bot
let number = 40;
const bot = { id: 7000000001, is_bot: true, first_name: "House", username: "house_bot", can_join_groups: true };

async function answer(method, body) {
  if (method === "getMe") return { ...bot, can_read_all_group_messages: true, supports_inline_queries: false };
  if (method === "getWebhookInfo") return { url: "", has_custom_certificate: false, pending_update_count: 0 };
  if (method === "getUpdates") {
    for (let i = 0; i < 20 && !waiting.length; i++) await rest(100);
    return waiting.splice(0);
  }
  if (method === "sendMessage" || method === "editMessageText") {
    sent.push(body.text);
    return { message_id: ++number, from: bot, chat: { id: Number(body.chat_id), type: "private" }, date: now(), text: body.text };
  }
  if (method === "getMyCommands") return [];
  return true;
}
const now = () => Math.floor(Date.now() / 1000);

// The model, without what newer ones say after the words of a person: it answers to what was said last.
async function askModel(path, body, response) {
  const asked = JSON.parse(body || "{}");
  const text = (message) => JSON.stringify(message.content ?? "");
  asked.messages = (asked.messages ?? []).filter((each) => !text(each).includes("END_OPENCLAW_INTERNAL_CONTEXT"));
  const answered = await fetch(process.env.MODEL_URL + path, { method: "POST", body: JSON.stringify(asked) });
  response.setHeader("Content-Type", answered.headers.get("content-type"));
  response.end(await answered.text());
}

const server = createServer((request, response) => {
  let body = "";
  request.on("data", (piece) => (body += piece));
  request.on("end", async () => {
    if (request.url.startsWith("/v1/")) return askModel(request.url.slice(3), body, response);
    const method = request.url.split("/").pop().split("?")[0];
    let asked = {};
    try {
      asked = JSON.parse(body || "{}");
    } catch {}
    const result = await answer(method, asked);
    response.setHeader("Content-Type", "application/json");
    response.end(JSON.stringify({ ok: true, result }));
  });
});
await new Promise((done) => server.listen(port, "127.0.0.1", done));

const people = { ann: 123456789, bob: 987654321, eve: 555000111 };
async function say(text, name = "ann", chat = null, topic = null) {
  const before = sent.length;
  const from = { id: people[name], is_bot: false, first_name: name[0].toUpperCase() + name.slice(1), username: name };
  const message = { message_id: ++number, from, date: now(), text };
  message.chat = chat
    ? { id: chat, type: "supergroup", title: "Family", is_forum: topic !== null }
    : { id: from.id, type: "private", first_name: from.first_name, username: name };
  if (topic !== null) Object.assign(message, { message_thread_id: topic, is_topic_message: true });
  waiting.push({ update_id: 1000 + number, message });
  for (let i = 0; i < 900 && sent.length === before; i++) await rest(100);
  for (let seen = -1; seen !== sent.length; await rest(2000)) seen = sent.length; // until it is quiet
  const said = sent.slice(before).join("\n");
  console.log("|", text, "|", said);
  if (!said) throw new Error(`no answer to ${text}`);
  return said;
}

await run("onboard", "--non-interactive", "--accept-risk", "--mode", "local", "--auth-choice", "openrouter-api-key",
  "--openrouter-api-key", "none", "--gateway-port", String(port + 1), "--gateway-token", "none",
  "--skip-channels", "--skip-skills", "--skip-health", "--skip-ui", "--no-install-daemon");
const file = `${state}/openclaw.json`;
const config = JSON.parse(readFileSync(file, "utf8"));
const model = { id: "gpt-4o", name: "gpt-4o", contextWindow: 128000, maxTokens: 4096, reasoning: false, input: ["text"],
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } };
config.models = { mode: "merge", providers: { local: { baseUrl: `http://127.0.0.1:${port}/v1`, apiKey: "none", api: "openai-completions", models: [model] } } };
Object.assign(config.agents.defaults, {
  model: { primary: "local/gpt-4o", fallbacks: ["openrouter/auto"] },
  userTimezone: "Europe/Berlin",
  heartbeat: { every: "0m" },
});
config.tools = { profile: "full" }; // else it could only send messages
config.channels = {
  telegram: { enabled: true, botToken: "7000000001:a-token", dmPolicy: "pairing", allowFrom: ["123456789"],
    groupPolicy: "allowlist", groupAllowFrom: ["123456789"], groups: { "-1001234567890": { requireMention: false } } },
};
const newer = !(await run("--version")).includes("2026.3.");
if (newer) {
  config.channels.telegram.apiRoot = `http://127.0.0.1:${port}`; // taken out again below
  config.channels.telegram.streaming = { mode: "off" };
  config.commands = { ownerAllowFrom: ["telegram:123456789"] }; // else it is the first who is approved
}
writeFileSync(file, JSON.stringify(config, null, 2));
const skill = `${state}/workspace/skills/feed-look`;
mkdirSync(skill, { recursive: true });
writeFileSync(`${skill}/SKILL.md`, "---\nname: feed-look\ndescription: How to look at the feed.\n---\n\nOpen the feed and read the newest three.\n");
writeFileSync(`${state}/workspace/SOUL.md`, "You are calm.\n");
writeFileSync(`${state}/workspace/USER.md`, "- **Name:** Ann\n- **Timezone:** Europe/Berlin\n\nAnn likes tea.\n");

const gateway = spawn(process.execPath, [entry, "gateway", "run", "--port", String(port + 1)], { env, stdio: ["ignore", "pipe", "pipe"] });
let log = "";
for (const pipe of [gateway.stdout, gateway.stderr]) pipe.on("data", (piece) => (log += piece));
try {
  await say("hello");
  await say("Please keep the cats in mind: Ada and Grace.");
  await say("Please count the pears.");
  await say("who is cooking?", "ann", -1001234567890, 7);
  const code = (await say("hello", "bob")).match(/\b[A-Z0-9]{8}\b/)?.[0];
  await run("pairing", "approve", "telegram", code);
  await say("hello", "bob");
  await say("hello", "eve"); // hers is not approved
  console.log(await run("agent", "--agent", "main", "--message", "hello"));
  const made = ["cron", "add", "--json", "--name"];
  await run(...made, "Bins", "--cron", "0 19 * * 3", "--tz", "Europe/Berlin", "--session", "isolated",
    "--message", "Remind Ann to put the bins out.", "--announce", "--channel", "telegram", "--to", "123456789");
  await run(...made, "Feed", "--every", "90m", "--session", "isolated", "--message", "Look whether there is news in the feed.",
    "--model", "local/gpt-4o", "--thinking", "low", "--timeout-seconds", "120", "--no-deliver");
  await run(...made, "Passport", "--at", "2031-03-01T09:00:00Z", "--session", "main", "--system-event", "Ann's passport runs out.");
} catch (error) {
  console.log(log);
  throw error;
} finally {
  gateway.kill("SIGTERM");
  await Promise.race([new Promise((done) => gateway.on("exit", done)), rest(15_000)]);
  gateway.kill("SIGKILL");
  if (newer) writeFileSync(file, readFileSync(file, "utf8").replace(/\s*"apiRoot": "[^"]*",?/, ""));
  server.closeAllConnections();
  server.close();
}
