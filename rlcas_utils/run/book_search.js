// Search results with an excerpt and links to the sections that hold the words. From file:// no page may read
// another page, so the texts of all pages come in one script instead of by fetch.
(() => {
  const texts = new Promise((resolve) => {
    const script = document.createElement("script");
    script.src = "_static/search_texts.js";
    script.onload = () => resolve(window.BOOK_TEXTS);
    document.head.append(script);
  });
  window.fetch = async (address) => {
    const page = String(address).replace(/^\.\//, "").replace(/\.html$/, "");
    return new Response(`<main data-page="${page}">${(await texts)[page] ?? ""}</main>`);
  };

  const before = 100, length = 260, mostPlaces = 8;
  const parts = (html) => new DOMParser().parseFromString(html, "text/html").querySelector("main");

  const excerpt = (text, at) => {
    const start = Math.max(at - before, 0), end = start + length;
    return (start ? "… " : "") + text.slice(start, end).trim() + (end < text.length ? " …" : "");
  };

  const places = (page, paragraphs) => {
    const inside = (section) => section && !section.parentElement.matches("main");
    const sections = new Set(paragraphs.map((p) => p.closest("section")).filter(inside));
    const list = document.createElement("p");
    list.className = "places";
    for (const section of [...sections].slice(0, mostPlaces)) {
      const link = list.appendChild(document.createElement("a"));
      link.href = `${page}.html#${section.id}`;
      link.textContent = section.dataset.title;
    }
    return list;
  };

  const summary = (html) => {
    const asked = new URLSearchParams(location.search).get("q") ?? "";
    const words = splitQuery(asked.toLowerCase());
    const main = parts(html), made = document.createElement("div");
    const found = (p) => words.map((word) => p.textContent.toLowerCase().indexOf(word)).find((i) => i >= 0) ?? -1;
    const hits = [...main.querySelectorAll("p")].filter((p) => found(p) >= 0);
    const isProse = (p) => p.dataset.prose && p.textContent.length > 80;
    const prose = hits.find(isProse) ?? hits[0];
    const context = made.appendChild(document.createElement("p"));
    context.className = "context";
    context.textContent = prose ? excerpt(prose.textContent, found(prose)) : "";
    made.append(places(main.dataset.page, hits));
    return made;
  };

  document.addEventListener("DOMContentLoaded", () => {
    Search.makeSearchSummary = summary;
  });
})();
