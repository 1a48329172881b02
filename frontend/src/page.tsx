// The host of a self-contained page: the payload stands in the document, the state in its address.
import type { Keeper } from "./App";
import { mount } from "./mount";
import type { Payload } from "./payload";

const keeper: Keeper = {
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

const payload = JSON.parse(document.getElementById("payload")!.textContent!) as Payload;
mount(document.getElementById("views")!, payload, keeper);
