// The navigation of a trace, which a small screen shows in part: the entry of this page is brought into view.

const current = document.querySelector(".sections a[aria-current]");
const row = current?.closest(".sections");

if (row) row.scrollLeft = current.offsetLeft - (row.clientWidth - current.offsetWidth) / 2;

export {}; // a module, as all scripts are: its names are its own
