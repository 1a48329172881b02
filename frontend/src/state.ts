// The state of the views, which a link can contain.

export const VIEWS = ["head", "model", "matrix", "neuron", "difference"] as const;
export const ACROSS = ["one", "mean", "max", "norm", "rollout"] as const;
export const FUSIONS = ["each", "mean", "max", "norm"] as const;
export const UNITS = ["tokens", "words"] as const;
export const SPECIALS = ["fade", "show", "hide", "renormalise"] as const;
export const PARTS = ["all", "aa", "ab", "ba", "bb"] as const;
export const KEEPS = ["auto", "mass", "all", "threshold", "top"] as const;
export const TREES = ["all", "gold", "predicted", "none"] as const;
export const CELLS = ["maps", "lines", "values"] as const;
export const ORDERS = ["model", "layers", "all"] as const;
export const COMPARED = ["most", "chosen"] as const;
export const SIDES = ["from", "to"] as const;
export const THEMES = ["auto", "light", "dark"] as const;

export interface State {
  view: (typeof VIEWS)[number];
  run: number;
  quantity: number;
  layer: number;
  heads: number[];
  across: (typeof ACROSS)[number];
  fusion: (typeof FUSIONS)[number];
  units: (typeof UNITS)[number];
  special: (typeof SPECIALS)[number];
  part: (typeof PARTS)[number];
  keep: (typeof KEEPS)[number];
  mass: number; // the share of each row's weight that is kept
  threshold: number;
  top: number;
  token: number; // the pinned unit, -1 for none
  side: (typeof SIDES)[number];
  tree: (typeof TREES)[number];
  relation: string; // of the arcs shown, empty for all
  sortRow: number; // columns are sorted by this row, -1 for the original order
  sortColumn: number;
  theme: (typeof THEMES)[number];
  measure: string; // the measure that colours heads in the model view; "" for the first (of results, else of this text), "none" for none
  cells: (typeof CELLS)[number]; // what a head looks like in the model view
  order: (typeof ORDERS)[number]; // of heads in the model view: as in the model, by measure in layers, by measure over all
  compared: (typeof COMPARED)[number]; // the head in the difference view: the most changed one, or the chosen one
}

export type Patch = Partial<State>;
export type Update = (patch: Patch) => void;

const CHOICES: { [name: string]: readonly string[] } = {
  view: VIEWS,
  across: ACROSS,
  fusion: FUSIONS,
  units: UNITS,
  special: SPECIALS,
  part: PARTS,
  keep: KEEPS,
  side: SIDES,
  tree: TREES,
  theme: THEMES,
  cells: CELLS,
  order: ORDERS,
  compared: COMPARED,
};

/** Which weights are kept: the strongest of each token as lines, all in the other views, unless one was chosen. */
export function keepOf(state: State): Exclude<State["keep"], "auto"> {
  return state.keep === "auto" ? (state.view === "head" ? "mass" : "all") : state.keep;
}

export function defaults(): State {
  return {
    view: "head",
    run: 0,
    quantity: 0,
    layer: 0,
    heads: [0],
    across: "one",
    fusion: "each",
    units: "tokens",
    special: "fade",
    part: "all",
    keep: "auto",
    mass: 0.8,
    threshold: 0.05,
    top: 3,
    token: -1,
    side: "from",
    tree: "all",
    relation: "",
    sortRow: -1,
    sortColumn: -1,
    theme: "auto",
    measure: "",
    cells: "maps",
    order: "model",
    compared: "most",
  };
}

/** How the layers and heads on the page are numbered in the model. */
export interface Numbers {
  layers: number;
  heads: number;
  layerNumber: (layer: number) => number;
  headNumber: (head: number) => number;
}

/** The values that differ from the defaults; layers and heads are numbered as in the model, from 1. */
export function toHash(state: State, defaultState: State, numbers: Numbers): string {
  const parameters = new URLSearchParams();
  for (const name of Object.keys(state) as (keyof State)[]) {
    const [value, initial] = [format(name, state[name], numbers), format(name, defaultState[name], numbers)];
    if (value !== initial) parameters.set(name, value);
  }
  return parameters.toString().replaceAll("%2C", ",");
}

/** The state in a link; invalid values are replaced by the defaults. */
export function fromHash(hash: string, defaultState: State, numbers: Numbers): State {
  const state: Record<string, unknown> = { ...defaultState };
  const parameters = new URLSearchParams(hash.replace(/^#/, ""));
  if (parameters.get("view") === "difference" && (parameters.has("layer") || parameters.has("heads"))) state.compared = "chosen";
  for (const [name, text] of parameters) {
    if (name in CHOICES) {
      if (CHOICES[name].includes(text)) state[name] = text;
    } else if (name === "measure") {
      state.measure = text;
    } else if (name === "heads") {
      const valid = text.split(",").map((head) => indexOf(Number(head), numbers.heads, (index) => numbers.headNumber(index))).filter((head) => head >= 0);
      if (valid.length) state.heads = [...new Set(valid)].sort((a, b) => a - b);
    } else if (name === "relation") {
      state.relation = text;
    } else if (name === "layer") {
      const layer = indexOf(Number(text), numbers.layers, (index) => numbers.layerNumber(index));
      if (layer >= 0) state.layer = layer;
    } else if (name in defaultState) {
      const value = Number(text);
      if (!text || !Number.isFinite(value)) continue;
      state[name] = name === "threshold" || name === "mass" ? Math.min(1, Math.max(0, value)) : Math.trunc(value);
    }
  }
  return state as unknown as State;
}

/** The index of a numbered layer or head; -1 if it is not on the page. */
function indexOf(number: number, count: number, numberOf: (index: number) => number): number {
  return Array.from({ length: count }, (_, index) => numberOf(index)).indexOf(number);
}

function format(name: keyof State, value: State[keyof State], numbers: Numbers): string {
  if (name === "heads") return (value as number[]).map((head) => numbers.headNumber(head)).join(",");
  if (name === "layer") return String(numbers.layerNumber(value as number));
  return String(value);
}
