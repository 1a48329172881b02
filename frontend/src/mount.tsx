// Mounts the views in an element, with a style that is isolated from the page.
import { render } from "preact";
import { App, type StateStore } from "./App";
import type { Payload } from "./payload";
import palette from "./palette.css?inline";
import style from "./style.css?inline";
import views from "./views/views.css?inline";

export function mount(host: HTMLElement, payload: Payload, store: StateStore): () => void {
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  root.innerHTML = "";
  const sheet = document.createElement("style");
  sheet.textContent = palette + style + views;
  const container = document.createElement("div");
  root.append(sheet, container);
  render(<App payload={payload} store={store} />, container);
  return () => render(null, container);
}
