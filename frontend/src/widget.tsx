// The host in notebooks (anywidget): payload and state are traits of the widget.
import type { StateStore } from "./App";
import { mount } from "./mount";
import type { Payload } from "./payload";

interface Model {
  get(name: "payload" | "state" | "identifier"): string;
  set(name: "state", value: string): void;
  save_changes(): void;
  on(event: string, onChange: () => void): void;
  off(event: string, onChange: () => void): void;
}

function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
  const store: StateStore = {
    read: () => model.get("state"),
    write: (hash) => {
      if (model.get("state") === hash) return;
      model.set("state", hash);
      model.save_changes();
    },
    listen: (onChange) => {
      model.on("change:state", onChange);
      return () => model.off("change:state", onChange);
    },
    link: null,
    ownsPage: false,
  };
  el.dataset.bertologyWidget = model.get("identifier"); // the frame in its place stays hidden then
  return mount(el, JSON.parse(model.get("payload")) as Payload, store);
}

export default { render };
