// What is looked at, in the address of the page: text, edits, model, changed heads, view, panel.
import type { EditRequest, InterventionRequest, LiveRequest } from "../api";

export const PANELS = ["card", "search", "corpus", "jobs", "pins"] as const;
export const VIEWS = ["head", "matrix", "neuron", "model", "difference"] as const;
export const QUANTITIES = ["attention", "norm", "gradient", "rollout"] as const;
export const ACTIONS = ["off", "uniform", "mean", "keep"] as const;

export type Panel = (typeof PANELS)[number];
export type Action = (typeof ACTIONS)[number];

export interface Bench {
  text: string;
  textB: string | null;
  example: number | null; // of the corpus, instead of a text
  model: string; // empty: the first one
  corpus: string; // empty: the first one
  edits: EditRequest[];
  off: string[];
  uniform: string[];
  mean: string[];
  keep: string[];
  layersOff: number[];
  head: string;
  view: (typeof VIEWS)[number];
  quantity: (typeof QUANTITIES)[number];
  token: number;
  side: "from" | "to";
  special: "fade" | "show" | "hide" | "renormalise";
  units: "tokens" | "words";
  colour: string; // the measure that colours the atlas
  panel: Panel;
  query: string; // of the search for links
  against: string; // the address of what this is compared with; empty: nothing
}

export const START: Bench = {
  text: "", textB: null, example: null, model: "", corpus: "", edits: [], off: [], uniform: [], mean: [], keep: [], layersOff: [], head: "",
  view: "head", quantity: "attention", token: -1, side: "from", special: "fade", units: "tokens", colour: "", panel: "card", query: "", against: "",
};

export function toAddress(bench: Bench): string {
  const parameters = new URLSearchParams();
  const set = (name: string, value: string) => value && parameters.set(name, value);
  if (bench.example === null) {
    set("text", bench.text);
    if (bench.textB !== null) parameters.set("b", bench.textB);
  } else set("example", String(bench.example));
  set("model", bench.model);
  set("corpus", bench.corpus);
  set("edits", bench.edits.map(({ position, action, text }) => `${position}${action[0]}${action === "replace" ? `:${encodeURIComponent(text ?? "")}` : ""}`).join(","));
  for (const action of ACTIONS) set(action, bench[action].join(","));
  set("layersoff", bench.layersOff.join(","));
  set("head", bench.head);
  for (const name of ["view", "quantity", "side", "special", "units", "panel"] as const) if (bench[name] !== START[name]) set(name, bench[name]);
  if (bench.token >= 0) set("token", String(bench.token));
  set("colour", bench.colour);
  set("query", bench.query);
  set("against", bench.against);
  return parameters.toString().replaceAll("%2C", ",");
}

/** The state in an address; what cannot be read is as at the start. */
export function fromAddress(hash: string): Bench {
  const parameters = new URLSearchParams(hash.replace(/^#/, ""));
  const value = (name: string) => parameters.get(name) ?? "";
  const choice = <Value extends string>(name: string, values: readonly Value[], initial: Value) => (values.includes(value(name) as Value) ? (value(name) as Value) : initial);
  const heads = (name: string) => value(name).split(",").filter((head) => /^\d{1,3}-\d{1,4}$/.test(head));
  const number = (name: string) => (/^\d{1,6}$/.test(value(name)) ? Number(value(name)) : null);
  return {
    text: value("text"),
    textB: parameters.get("b"),
    example: number("example"),
    model: value("model"),
    corpus: value("corpus"),
    edits: value("edits").split(",").flatMap(parseEdit),
    off: heads("off"),
    uniform: heads("uniform"),
    mean: heads("mean"),
    keep: heads("keep"),
    layersOff: value("layersoff").split(",").filter((layer) => /^\d{1,3}$/.test(layer)).map(Number),
    head: heads("head")[0] ?? "",
    view: choice("view", VIEWS, START.view),
    quantity: choice("quantity", QUANTITIES, START.quantity),
    token: number("token") ?? -1,
    side: choice("side", ["from", "to"], START.side),
    special: choice("special", ["fade", "show", "hide", "renormalise"], START.special),
    units: choice("units", ["tokens", "words"], START.units),
    colour: value("colour"),
    panel: choice("panel", PANELS, START.panel),
    query: value("query"),
    against: value("against"),
  };
}

function parseEdit(text: string): EditRequest[] {
  const match = /^(\d{1,4})([mrd])(?::(.*))?$/.exec(text);
  if (!match) return [];
  const action = ({ m: "mask", r: "replace", d: "delete" } as const)[match[2] as "m" | "r" | "d"];
  try {
    return [{ position: Number(match[1]), action, text: decodeURIComponent(match[3] ?? "") }];
  } catch {
    return [];
  }
}

export function interventionOf({ off, uniform, mean, keep, layersOff }: Bench): InterventionRequest {
  return { off, uniform, mean, keep, layers_off: layersOff };
}

export function isChanged({ off, uniform, mean, keep, layersOff }: Bench): boolean {
  return [off, uniform, mean, keep, layersOff].some((each) => each.length > 0);
}

/** The text, its edits, the model, and the corpus that an example and the mean of a head are of. */
export function textOf({ text, textB, example, model, corpus, edits }: Bench): LiveRequest {
  return example === null ? { text, text_b: textB, model, corpus, edits } : { example, model, corpus, edits };
}

export function hasText({ text, textB, example }: Bench): boolean {
  return example !== null || (text.trim() !== "" && (textB === null || textB.trim() !== ""));
}

export function layerOf(head: string): number {
  return Number(head.split("-")[0]);
}

/** Only what is looked at: the chosen layer, or all where the view needs them. */
export function liveRequest(bench: Bench, isCompared: boolean): LiveRequest {
  const needsAll = bench.view === "model" || bench.quantity === "rollout" || (bench.view === "difference" && isCompared);
  const quantity = bench.quantity === "norm" || bench.quantity === "gradient" ? [bench.quantity] : [];
  return {
    ...textOf(bench),
    intervention: interventionOf(bench),
    layers: needsAll ? null : [layerOf(bench.head)],
    quantities: ["attention", ...quantity],
    neurons: bench.view === "neuron",
  };
}

/** The state of a view in a page of pins. */
export function viewHash(bench: Bench): string {
  const [layer, head] = bench.head.split("-");
  const parameters = new URLSearchParams({ view: bench.view, layer, heads: head });
  if (bench.quantity === "rollout") parameters.set("across", "rollout");
  else if (bench.quantity !== "attention") parameters.set("quantity", "1");
  if (bench.token >= 0) parameters.set("token", String(bench.token));
  return parameters.toString();
}
