"use strict";

// Everything here is an addition: without it the page shows the same content.
const root = document.documentElement;

function stored(key, value) {
  try {
    if (value === undefined) return localStorage.getItem(key);
    localStorage.setItem(key, value);
  } catch { /* a page opened from a file may have no storage */ }
  return null;
}

function addThemeButton() {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "theme";
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const show = () => { button.textContent = dark() ? "Light" : "Dark"; button.setAttribute("aria-label", `Switch to the ${dark() ? "light" : "dark"} theme`); };
  button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; stored("stepscope-theme", root.dataset.theme); show(); });
  const last = stored("stepscope-theme");
  if (last === "light" || last === "dark") root.dataset.theme = last;
  show();
  document.querySelector("nav.contents").append(button);
}

// Copies the command that it stands behind.
function copyButton() {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  return button;
}

function addCopyButtons() {
  if (!navigator.clipboard) return;
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button.copy");
    if (!button) return;
    try {
      await navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent);
      button.textContent = "Copied";
    } catch { button.textContent = "Select and copy"; }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  for (const code of document.querySelectorAll("td > code")) if (code.textContent.includes(" ")) code.after(copyButton());
  for (const code of document.querySelectorAll("code.command")) {
    const holder = document.createElement("span");
    code.replaceWith(holder);
    holder.append(code, copyButton());
  }
}

function openForPrint() {
  let opened = [];
  addEventListener("beforeprint", () => { opened = [...document.querySelectorAll("details:not([open])")]; for (const one of opened) one.open = true; });
  addEventListener("afterprint", () => { for (const one of opened) one.open = false; });
}

function markPlace() {
  const links = new Map([...document.querySelectorAll("nav.contents a")].map((link) => [link.hash.slice(1), link]));
  const headings = [...document.querySelectorAll("h2[id], h3[id]")];
  const update = () => {
    const current = headings.filter((heading) => heading.getBoundingClientRect().top < 120).pop() ?? headings[0];
    for (const [name, link] of links) {
      if (current && name === current.id) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  };
  addEventListener("scroll", update, { passive: true });
  update();
}

addThemeButton();
addCopyButtons();
openForPrint();
markPlace();
