// The server's own page for an address: parts of it take the place of older ones, so that both always say the same.

/** @returns {Promise<{answer: Response, page: Document}>} */
export async function pageAt(url) {
  const answer = await fetch(url, { headers: { Accept: "text/html" } });
  return { answer, page: new DOMParser().parseFromString(await answer.text(), "text/html") };
}
