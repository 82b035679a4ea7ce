// What another app has shared with this one (sw.js keeps it): it is put into the message that is
// being written, if the person wants that. Any page can send such a form, so nothing is done unasked.

import { addToDraft } from "./composer.js";
import { attachFiles } from "./composer-files.js";
import { Icon } from "./icons.js";
import { t } from "./language.js";
import { html, useEffect, useState } from "./lib.js";
import { Modal } from "./modal.js";

const SHARED = "deskhand-shared";

async function loadShared() {
  const cache = await caches.open(SHARED);
  const found = await cache.match("/shared");
  if (!found) return null;
  const { text, files } = await found.json();
  const load = async ({ name, type }, i) =>
    new File([await (await cache.match(`/shared/${i}`)).blob()], name, { type });
  return { text, files: await Promise.all(files.map(load)) };
}

export function SharedIn({ close }) {
  const [shared, setShared] = useState(null);
  useEffect(() => {
    loadShared()
      .catch(() => null)
      .then((found) => (found ? setShared(found) : close()));
  }, []);
  const forget = () => {
    caches.delete(SHARED);
    close();
  };
  if (!shared) return null;
  return html`
    <${Modal} class="prompt shared-in" label=${t("Shared with Deskhand")} close=${forget}>
      <h2>${t("Shared with Deskhand")}</h2>
      ${shared.text && html`<pre class="exact" tabindex="0">${shared.text}</pre>`}
      <ul class="plain">
        ${shared.files.map(
          (file, i) =>
            html`<li key=${i} class="row"><${Icon} name="file" /><span class="wrap">${file.name}</span></li>`,
        )}
      </ul>
      <p class="small muted">${t("Nothing is sent before you press Send.")}</p>
      <div class="row">
        <button
          type="button"
          class="btn main"
          onClick=${() => {
            addToDraft(shared.text);
            attachFiles(shared.files);
            forget();
          }}
        >
          ${t("Put it into the message")}
        </button>
        <button type="button" class="btn" onClick=${forget}>${t("Discard")}</button>
      </div>
    <//>
  `;
}
