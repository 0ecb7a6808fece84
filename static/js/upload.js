// The upload form with a script: a file dropped anywhere on the page is taken, and sending shows how far it is.

import { progressWords, tooLarge } from "./lib/upload.js";

const form = document.getElementById("upload");
const words = document.getElementById("upload-words");
const bar = document.getElementById("upload-progress");
const stop = document.getElementById("upload-stop");

let sending = null;

function say(text) {
  words.textContent = text;
}

function rest() {
  sending = null;
  bar.hidden = stop.hidden = true;
  form.querySelector("button[type=submit]").disabled = false;
}

/** What the server said in an answer; its pages come as JSON when that is asked for. */
function sentenceOf(request) {
  try {
    return JSON.parse(request.responseText).sentence;
  } catch {
    return `The server refused the file (status ${request.status}).`;
  }
}

function send(file) {
  if (sending) return;
  const limit = Number(form.dataset.limit);
  if (file.size > limit) return say(tooLarge(file.size, limit));
  if (file.size === 0) return say("The file is empty.");
  const request = new XMLHttpRequest(); // fetch says nothing about how far sending is
  sending = request;
  request.open("POST", form.action);
  request.setRequestHeader("Accept", "application/json");
  request.setRequestHeader("Content-Type", "application/octet-stream");
  request.setRequestHeader("X-File-Name", encodeURIComponent(file.name));
  request.setRequestHeader("X-Form-Token", form.elements.form_token.value);
  request.upload.addEventListener("progress", (event) => {
    if (!event.lengthComputable) return;
    bar.querySelector("progress").value = (100 * event.loaded) / event.total;
    say(progressWords(file.name, event.loaded, event.total));
  });
  request.addEventListener("load", () => {
    if (request.status === 201) return location.assign(JSON.parse(request.responseText).href);
    rest();
    say(sentenceOf(request));
  });
  request.addEventListener("error", () => {
    rest();
    say("Sending failed: the server ended the connection. The file may be too large, or the server was stopped.");
  });
  request.addEventListener("abort", () => {
    rest();
    say("Stopped. Nothing was kept.");
  });
  bar.hidden = stop.hidden = false;
  bar.querySelector("progress").value = 0;
  form.querySelector("button[type=submit]").disabled = true;
  request.send(file);
}

if (form) {
  form.addEventListener("submit", (event) => {
    const file = form.elements.file.files[0];
    if (!file) return;
    event.preventDefault();
    send(file);
  });
  stop.addEventListener("click", () => sending?.abort());
  const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  document.addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    form.classList.add("over");
  });
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) form.classList.remove("over");
  });
  document.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    form.classList.remove("over");
    const files = event.dataTransfer.files;
    if (files.length === 1) send(files[0]);
    else say("Drop one file at a time.");
  });
  document.getElementById("upload-hint").prepend("Choose a file, or drop it anywhere on this page. ");
}
