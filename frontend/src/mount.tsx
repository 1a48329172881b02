// The views inside an element, with a style of their own that nothing around them can change.
import { render } from "preact";
import { App, type Keeper } from "./App";
import type { Payload } from "./payload";
import style from "./style.css?inline";

export function mount(host: HTMLElement, payload: Payload, keeper: Keeper): () => void {
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  root.innerHTML = "";
  const sheet = document.createElement("style");
  sheet.textContent = style;
  const place = document.createElement("div");
  root.append(sheet, place);
  render(<App payload={payload} keeper={keeper} />, place);
  return () => render(null, place);
}
