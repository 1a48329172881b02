// Generated from src/bertology/views/payload.py by `python -m bertology.views.typescript frontend/src`; do not edit.

/** A paper and its entry for a bibliography. */
export interface Citation {
  key: string;
  bibtex: string;
}

/** An edge between two words; in a directed tree from a dependent to its governor. */
export interface DependencyArc {
  start: number;
  end: number;
  label: string;
}

/** Edges over the words of an input, and their source. */
export interface DependencyTree {
  name: string;
  description: string;
  directed: boolean;
  arcs: DependencyArc[];
}

/** What a baseline reaches for each head: (layer, head); null where it was not measured. */
export interface HeadBaseline {
  name: string;
  values: ((number | null)[])[];
}

/** What a head does and the evidence for it; layer and head are counted from 0. `score` is a proportion or a share, `effect` its distance from the highest baseline; both are null in labels of the user. `citations` are keys of the papers whose method found the label. */
export interface HeadLabel {
  layer: number;
  head: number;
  label: string;
  evidence: string;
  score: number | null;
  effect: number | null;
  citations: string[];
}

/** One measure of every head over a corpus: (layer, head), null where it was not measured. `low` and `high` are the ends of the intervals, whose kind is `interval`; `source` is the analysis and its corpus. With `lowest`, the head with the lowest value stands out. p values are compared with their level, not ranked. */
export interface HeadMeasure {
  name: string;
  unit: string;
  source: string;
  interval: string;
  values: ((number | null)[])[];
  low: ((number | null)[])[];
  high: ((number | null)[])[];
  n: number[][];
  baselines: HeadBaseline[];
  lowest: boolean;
  is_p_value: boolean;
}

/** One model on one input. `value_norms` are the norms of f(x), the transformed value vectors: (layer, head, 1, token), null if unknown. `causal`: a token attends only to earlier tokens. `attention_windows`: for each layer the distance up to which a token attends, null if unlimited; empty if it is unlimited in all layers. `name` tells the runs of a page apart, `model` is the name of the model. `labelling` says how many heads are labelled, and what a label needs. `focus` is for each layer and head the mean over tokens that are not special of the strongest weight on another of them. `role` is the part of an encoder-decoder; in cross-attention the second text, the decoder's, attends to the first. `layer_numbers` and `head_numbers` name the layers and heads, if these are not all of the model's; else empty. */
export interface ModelRun {
  name: string;
  role: string;
  model: string;
  tokens: ViewToken[];
  words: string[];
  is_pair: boolean;
  causal: boolean;
  attention_windows: (number | null)[];
  quantities: Quantity[];
  value_norms: QuantisedRows | null;
  query: QuantisedRows | null;
  key: QuantisedRows | null;
  labels: HeadLabel[];
  trees: DependencyTree[];
  measures: HeadMeasure[];
  labelling: string;
  focus: number[][];
  layer_numbers: number[];
  head_numbers: number[];
}

/** Rows of numbers, one chunk per layer of shape (head, row, size); signed integers are offset by `levels`. With `levels` 0 they are exact 32-bit floats, else integers in so many steps of their row's largest. */
export interface QuantisedRows {
  heads: number;
  rows: number;
  size: number;
  levels: number;
  bytes: number;
  signed: boolean;
  chunks: string[];
}

/** A kind of weight between tokens: (layer, head, from, to). */
export interface Quantity {
  name: string;
  description: string;
  weights: QuantisedRows;
  citations: string[];
}

/** A token; `word_index` is the index of its word or -1, `segment` 0 or 1 in a pair. `source` is the text that an unknown token stands for; empty for all other tokens. */
export interface ViewToken {
  text: string;
  word_index: number;
  segment: number;
  special: boolean;
  source: string;
}

/** Everything a page shows; `state` is the initial state, as in the fragment of its address. `command` is the command that makes the page, if there is one; `citations` has all papers that its parts name. */
export interface Payload {
  title: string;
  runs: ModelRun[];
  notes: string[];
  state: string;
  command: string;
  citations: Citation[];
}
