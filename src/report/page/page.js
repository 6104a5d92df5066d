const search = document.getElementById("search");
const entries = [...document.querySelectorAll(".entry")];
const fold = (open) => document.querySelectorAll("main details:not([hidden])").forEach((each) => { each.open = open; });
const show = () => {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const entry of entries) {
    const text = entry.textContent.toLowerCase();
    entry.hidden = !words.every((word) => text.includes(word));
  }
};
const reveal = () => {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (target instanceof HTMLDetailsElement) { target.open = true; target.scrollIntoView(); }
};
for (const [id, open] of [["unfold", true], ["fold", false]]) {
  const button = document.getElementById(id);
  button.hidden = false;
  button.addEventListener("click", () => fold(open));
}
search.hidden = false;
search.addEventListener("input", show);
addEventListener("hashchange", reveal);
reveal();
