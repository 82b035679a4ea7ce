// Files that an answer names: a link opens the file, a picture is shown where it stands.
import { get } from "./api.js";
import { t } from "./language.js";
import { openPreview, workspaceFile } from "./preview.js";

/** The path of a file that is named in a file of the folder `base`; '' is the workspace. */
const resolvePath = (base, path) => (base && !path.startsWith("/") ? base + path : path);

/** The place in a file that an address names: `{line, last}`, `{page}`, or null. */
function readPlace(at = "") {
  const [, line, last, page] = /^(?:L(\d+)(?:-L?(\d+))?|page=(\d+))$/.exec(at) ?? [];
  if (page) return { page: Number(page) };
  if (!line) return null;
  return { line: Number(line), last: Math.max(Number(line), Number(last ?? line)) };
}

/** For clicks in an answer: true where one was meant for a file. */
export function openFile(event, base = "") {
  const button = event.target.closest?.("button.file-link");
  if (!button?.dataset.path) return false;
  const path = resolvePath(base, button.dataset.path);
  openPreview(workspaceFile(path, readPlace(button.dataset.at)));
  return true;
}

/** Show the pictures that are named beneath this element. */
export function drawPictures(element, base = "") {
  for (const button of element.querySelectorAll("button.file-link.picture[data-path]")) {
    const file = workspaceFile(resolvePath(base, button.dataset.path));
    const words = button.textContent.trim();
    const image = Object.assign(document.createElement("img"), {
      alt: words,
      className: "picture",
      loading: "lazy",
    });
    image.addEventListener("error", () => explainMissingPicture(button, file, words));
    image.src = file.raw;
    button.replaceChildren(image);
    button.setAttribute("aria-label", t("Open {name}", { name: words || file.name }));
  }
}

function describeMissing(name, status) {
  if (status === 403) return t("{name} may not be seen by you", { name });
  if (status === 404) return t("{name} is not there any more", { name });
  return t("{name} cannot be loaded now", { name });
}

/** Why there is no picture. What is there, and is none, stays a link. */
async function explainMissingPicture(button, file, words) {
  try {
    await get(file.about);
    button.classList.remove("picture");
    button.removeAttribute("aria-label");
    button.textContent = words || file.name;
  } catch (error) {
    const said = describeMissing(file.name, error.status);
    button.replaceWith(
      Object.assign(document.createElement("span"), { className: "void", textContent: said }),
    );
  }
}
