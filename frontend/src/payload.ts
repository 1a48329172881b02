// Generated from src/bertology/views/payload.py by `python -m bertology.views.typescript`; do not edit.

/** An edge between two words: from a dependent to its head where the tree has directions. */
export interface Arc {
  start: number;
  end: number;
  label: string;
}

/** Rows of numbers, one chunk a layer: (head, row, size) each; `signed` steps start at -levels. */
export interface Coded {
  heads: number;
  rows: number;
  size: number;
  levels: number;
  bytes: number;
  signed: boolean;
  chunks: string[];
}

/** What an analysis found a head to do, and on what evidence; counted from 0. */
export interface HeadLabel {
  layer: number;
  head: number;
  label: string;
  evidence: string;
}

/** A piece as it is shown; `word` is its index among the words or -1, `segment` 0 or 1 in a pair. */
export interface Piece {
  text: string;
  word: number;
  segment: number;
  special: boolean;
}

/** One kind of weight between pieces: (layer, head, from, to). */
export interface Quantity {
  name: string;
  about: string;
  maps: Coded;
}

/** One model on one input; `lengths` are those of f(x), (layer, head, 1, piece), where they are known. `causal`: a piece sees only what is before it. `reach`: by layer, how many pieces away it sees, null as far as there are any; empty where all layers do. */
export interface Run {
  name: string;
  pieces: Piece[];
  words: string[];
  pair: boolean;
  causal: boolean;
  reach: (number | null)[];
  quantities: Quantity[];
  lengths: Coded | null;
  query: Coded | null;
  key: Coded | null;
  labels: HeadLabel[];
  trees: Tree[];
}

/** Edges over the words of an input, where they come from, and how good they are. */
export interface Tree {
  name: string;
  about: string;
  directed: boolean;
  arcs: Arc[];
}

/** Everything a page shows; `state` is what it opens with, as in the address of a link. */
export interface Payload {
  title: string;
  runs: Run[];
  notes: string[];
  state: string;
}
