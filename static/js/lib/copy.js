// Buttons that copy a text; they appear only where a script runs and the browser lets it copy.

/** Wire every `button[data-copy]`; an empty value copies the address of the page. */
export function wireCopyButtons() {
  if (!navigator.clipboard) return;
  for (const button of document.querySelectorAll("button[data-copy][hidden]")) {
    const said = button.textContent;
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.dataset.copy || location.href);
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = said), 1500);
    });
  }
}
