// The host in documents: a page, with its state in the address, or fragments of another page, with their own state.
// Fragments start when they come near the screen.
import type { StateStore } from "./App";
import { mount } from "./mount";
import type { Payload } from "./payload";

const addressStore: StateStore = {
  read: () => location.hash.slice(1),
  write: (hash) => {
    if (location.hash.slice(1) === hash) return;
    try {
      history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
    } catch {
      // A page in a notebook's frame has no address.
    }
  },
  listen: (onChange) => window.addEventListener("hashchange", onChange),
  ownsPage: true,
  link: location.protocol === "about:" ? null : (hash) => `${location.href.split("#")[0]}#${hash}`,
};

// A page drives a fragment: it sets data-state and dispatches a `bertology-view-state` event on the element.
function elementStore(host: HTMLElement): StateStore {
  return {
    read: () => host.dataset.state ?? "",
    write: (hash) => void (host.dataset.state = hash),
    listen: (onChange) => host.addEventListener("bertology-view-state", onChange),
    link: null,
  };
}

function start(host: HTMLElement): void {
  const text = document.querySelector(`script[data-bertology-payload="${host.dataset.bertologyView}"]`)!.textContent!;
  mount(host, JSON.parse(text) as Payload, host.dataset.state === undefined ? addressStore : elementStore(host));
}

const observer = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      observer.unobserve(target);
      start(target as HTMLElement);
    }
  },
  { rootMargin: "400px" },
);

for (const host of document.querySelectorAll<HTMLElement>("[data-bertology-view]")) {
  if (host.dataset.state === undefined) start(host);
  else observer.observe(host);
}
