// The upload of a file on the page Import: how far it is, and what the file brought.
import { $, element } from "./dom.js";

const form = $("upload");
const bar = $("upload-progress");

function show(...lines) {
  $("upload-result").replaceChildren(...lines.map((line) => (typeof line === "string" ? element("p", {}, line) : line)));
}

function over(...lines) {
  bar.hidden = true;
  form.querySelector("button").disabled = false;
  show(...lines);
}

function answered(request) {
  let answer;
  try {
    answer = JSON.parse(request.responseText);
  } catch {
    answer = { error: "the file could not be read; reload the page and try again" };
  }
  if (answer.error) {
    over(`That did not work: ${answer.error}.`);
    return;
  }
  for (const outdated of document.querySelectorAll("main > section:not(.card)")) outdated.remove();
  over(...answer.lines, element("p", {}, element("a", { href: "/desk/import" }, "Show what needs review")));
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const [file] = form.elements.file.files;
  const most = Number(form.dataset.most);
  if (file.size > most) {
    show(`The file has ${Math.ceil(file.size / 2 ** 20)} MB; at most ${most / 2 ** 20} MB can be uploaded. Use the command glyphoxa import.`);
    return;
  }
  const request = new XMLHttpRequest();
  request.open("POST", `/desk/import/file?${new URLSearchParams({ kind: form.elements.kind.value, name: file.name })}`);
  request.upload.addEventListener("progress", ({ loaded, total }) => {
    bar.value = total ? loaded / total : 0;
  });
  request.upload.addEventListener("load", () => {
    bar.removeAttribute("value");
    show("Uploaded. Reading it takes a moment.");
  });
  request.addEventListener("load", () => answered(request));
  request.addEventListener("error", () => over("The connection was lost. Nothing was imported; try again."));
  form.querySelector("button").disabled = true;
  bar.value = 0;
  bar.hidden = false;
  show("Uploading …");
  request.send(file);
});
