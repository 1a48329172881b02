// What is on screen, and nothing else: it can be written into a link and read back.

export const VIEWS = ["head", "model", "matrix", "neuron", "difference"] as const;
export const ACROSS = ["one", "mean", "max", "norm", "rollout"] as const;
export const FUSIONS = ["each", "mean", "max", "norm"] as const;
export const UNITS = ["pieces", "words"] as const;
export const SPECIALS = ["show", "hide", "renormalise"] as const;
export const PARTS = ["all", "aa", "ab", "ba", "bb"] as const;
export const KEEPS = ["all", "threshold", "top"] as const;
export const TREES = ["all", "gold", "found", "none"] as const;
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
  threshold: number;
  top: number;
  token: number; // the pinned one, -1 for none
  side: (typeof SIDES)[number];
  tree: (typeof TREES)[number];
  sortRow: number; // columns are sorted by this row, -1 for the order of the text
  sortColumn: number;
  theme: (typeof THEMES)[number];
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
};

export function defaults(layers: number, heads: number, pieces: number): State {
  return {
    view: "head",
    run: 0,
    quantity: 0,
    layer: 0,
    heads: Array.from({ length: pieces <= 32 ? heads : Math.min(heads, 1) }, (_, head) => head),
    across: "one",
    fusion: "each",
    units: "pieces",
    special: "show",
    part: "all",
    keep: "all",
    threshold: 0.05,
    top: 3,
    token: -1,
    side: "from",
    tree: "all",
    sortRow: -1,
    sortColumn: -1,
    theme: "auto",
    ...(layers === 0 ? { layer: 0 } : {}),
  };
}

/** Only what differs from the defaults; layers and heads are written as people count them, from 1. */
export function toHash(state: State, usual: State): string {
  const words = new URLSearchParams();
  for (const name of Object.keys(state) as (keyof State)[]) {
    const [value, known] = [written(name, state[name]), written(name, usual[name])];
    if (value !== known) words.set(name, value);
  }
  return words.toString().replaceAll("%2C", ",");
}

/** The state a link asks for; what it says wrongly is left as usual. */
export function fromHash(hash: string, usual: State, limits: { layers: number; heads: number }): State {
  const state: Record<string, unknown> = { ...usual };
  for (const [name, text] of new URLSearchParams(hash.replace(/^#/, ""))) {
    if (name in CHOICES) {
      if (CHOICES[name].includes(text)) state[name] = text;
    } else if (name === "heads") {
      const named = text.split(",").map((head) => Number(head) - 1);
      const known = named.filter((head) => Number.isInteger(head) && head >= 0 && head < limits.heads);
      if (known.length) state.heads = [...new Set(known)].sort((a, b) => a - b);
    } else if (name in usual) {
      const value = Number(text) - (name === "layer" ? 1 : 0);
      if (!text || !Number.isFinite(value)) continue;
      if (name === "layer" && !(Number.isInteger(value) && value >= 0 && value < limits.layers)) continue;
      state[name] = name === "threshold" ? Math.min(1, Math.max(0, value)) : Math.trunc(value);
    }
  }
  return state as unknown as State;
}

function written(name: keyof State, value: State[keyof State]): string {
  if (name === "heads") return (value as number[]).map((head) => head + 1).join(",");
  if (name === "layer") return String((value as number) + 1);
  return String(value);
}
