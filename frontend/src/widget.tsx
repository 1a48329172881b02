// The host in notebooks (anywidget): the payload and the state are traits of the widget.
import type { Keeper } from "./App";
import { mount } from "./mount";
import type { Payload } from "./payload";

interface Model {
  get(name: "payload" | "state"): string;
  set(name: "state", value: string): void;
  save_changes(): void;
  on(event: string, changed: () => void): void;
}

function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
  const keeper: Keeper = {
    read: () => model.get("state"),
    write: (hash) => {
      if (model.get("state") === hash) return;
      model.set("state", hash);
      model.save_changes();
    },
    listen: (changed) => model.on("change:state", changed),
    link: null,
  };
  return mount(el, JSON.parse(model.get("payload")) as Payload, keeper);
}

export default { render };
