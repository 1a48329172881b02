// The host in documents: a page of its own, whose state stands in its address, or fragments of another page, which keep
// theirs to themselves. A fragment is made when it comes near the screen; until then its numbers are text.
import type { Keeper } from "./App";
import { mount } from "./mount";
import type { Payload } from "./payload";

const address: Keeper = {
  read: () => location.hash.slice(1),
  write: (hash) => {
    if (location.hash.slice(1) === hash) return;
    try {
      history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
    } catch {
      // A page inside a notebook's frame has no address of its own.
    }
  },
  listen: (changed) => window.addEventListener("hashchange", changed),
  link: location.protocol === "about:" ? null : (hash) => `${location.href.split("#")[0]}#${hash}`,
};

function aside(state: string): Keeper {
  return { read: () => state, write: (hash) => void (state = hash), listen: () => {}, link: null };
}

function begin(host: HTMLElement): void {
  const text = document.querySelector(`script[data-bertology-payload="${host.dataset.bertologyView}"]`)!.textContent!;
  mount(host, JSON.parse(text) as Payload, host.dataset.state === undefined ? address : aside(host.dataset.state));
}

const near = new IntersectionObserver(
  (seen) => {
    for (const { target, isIntersecting } of seen) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      begin(target as HTMLElement);
    }
  },
  { rootMargin: "400px" },
);

for (const host of document.querySelectorAll<HTMLElement>("[data-bertology-view]")) {
  if (host.dataset.state === undefined) begin(host);
  else near.observe(host);
}
