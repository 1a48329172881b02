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
  listen: (onChange) => {
    window.addEventListener("hashchange", onChange);
    return () => window.removeEventListener("hashchange", onChange);
  },
  ownsPage: true,
  link: location.protocol === "about:" ? null : (hash) => `${location.href.split("#")[0]}#${hash}`,
};

/** The state of a view inside another page; the page can set it by an event, see STATE_EVENT. */
function hostStore(host: HTMLElement): StateStore {
  return {
    read: () => host.dataset.state!,
    write: (hash) => void (host.dataset.state = hash),
    listen: (onChange) => {
      host.addEventListener(STATE_EVENT, onChange);
      return () => host.removeEventListener(STATE_EVENT, onChange);
    },
    link: null,
    ownsPage: false,
  };
}

/** The event on the window by which a page sets the state of its views: its detail is a fragment, "layer=4&heads=4". */
const STATE_EVENT = "bertology-view-state";

window.addEventListener(STATE_EVENT, (event) => {
  const fragment = (event as CustomEvent<unknown>).detail;
  if (typeof fragment !== "string") return;
  for (const host of document.querySelectorAll<HTMLElement>("[data-bertology-view]")) {
    if (host.dataset.state === undefined) location.hash = fragment;
    else host.dataset.state = merge(host.dataset.state, fragment);
    host.dispatchEvent(new CustomEvent(STATE_EVENT));
  }
});

/** The first fragment with the values of the second; a token stays pinned only if the second names it. */
function merge(fragment: string, patch: string): string {
  const [parameters, changes] = [new URLSearchParams(fragment), new URLSearchParams(patch.replace(/^#/, ""))];
  parameters.delete("token");
  changes.forEach((value, name) => parameters.set(name, value));
  return parameters.toString().replaceAll("%2C", ",");
}

/** Shows the data that the host names, and other data as soon as the page names them and dispatches the event. */
function start(host: HTMLElement): void {
  let name: string | undefined;
  let unmount = () => {};
  const show = () => {
    if (host.dataset.bertologyView === name) return;
    name = host.dataset.bertologyView;
    unmount();
    const text = document.querySelector(`script[data-bertology-payload="${CSS.escape(name!)}"]`)!.textContent!;
    unmount = mount(host, JSON.parse(text) as Payload, host.dataset.state === undefined ? addressStore : hostStore(host));
  };
  show();
  host.addEventListener(STATE_EVENT, show);
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
