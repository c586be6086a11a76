// The site's search: all words of the question in a part of a page, best first. The index is a script, which
// a browser loads from a folder too, and is asked for when somebody searches.
"use strict";
let found = null;
const q = document.getElementById("q"), hits = document.getElementById("hits"), pages = document.getElementById("pages");

function score(part, words) {
	const [, page, heading, text] = part.map((t) => t.toLowerCase());
	let sum = 0;
	for (const word of words) {
		const times = text.split(word).length - 1;
		const at = (heading.includes(word) ? 20 : 0) + (page.includes(word) ? 10 : 0) + Math.min(times, 5);
		if (!at)
			return 0;
		sum += at;
	}
	return sum;
}

function excerpt(text, words) {
	const at = Math.max(Math.min(...words.map((w) => text.toLowerCase().indexOf(w)).filter((i) => i >= 0), text.length) - 40, 0);
	return (at ? "…" : "") + text.slice(at, at + 140) + (text.length > at + 140 ? "…" : "");
}

function show() {
	const words = q.value.toLowerCase().split(/\s+/).filter(Boolean);
	hits.replaceChildren();
	pages.hidden = words.length > 0;
	if (!words.length)
		return;
	if (!found) {
		const index = document.createElement("script");
		index.src = "index.js";
		document.head.append(index);
		return;
	}
	const best = found.map((part) => [score(part, words), part]).filter(([n]) => n).sort((a, b) => b[0] - a[0]).slice(0, 20);
	for (const [, [to, page, heading, text]] of best) {
		const row = document.createElement("li"), link = document.createElement("a"), about = document.createElement("small");
		link.href = to;
		link.textContent = page === heading ? page : page + ": " + heading;
		about.textContent = excerpt(text, words);
		row.append(link, about);
		hits.append(row);
	}
	if (!best.length)
		hits.textContent = "Nothing has all of these words.";
}

q.addEventListener("input", show);
document.addEventListener("keydown", (e) => {
	if (e.key === "/" && document.activeElement !== q) {
		e.preventDefault();
		q.focus();
	} else if (e.key === "Enter" && document.activeElement === q) {
		hits.querySelector("a")?.click();
	} else if (e.key === "Escape" && document.activeElement === q) {
		q.value = "";
		show();
	}
});
