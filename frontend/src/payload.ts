// Generated from src/bertology/views/payload.py by `python -m bertology.views.typescript`; do not edit.

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

/** One model on one input. */
export interface Run {
  name: string;
  pieces: Piece[];
  words: string[];
  pair: boolean;
  quantities: Quantity[];
  query: Coded | null;
  key: Coded | null;
  labels: HeadLabel[];
}

/** Everything a page shows; `state` is what it opens with, as in the address of a link. */
export interface Payload {
  title: string;
  runs: Run[];
  state: string;
}
