// Generated from src/bertology/server by `python -m bertology.server.typescript frontend/src`; do not edit.

import type { HeadLabel, HeadMeasure, ModelRun, QuantisedRows } from "./payload";

/** Nothing. */
export interface EmptyRequest {
}

/** The corpus: its size and annotations when it has been read. */
export interface CorpusState {
  name: string;
  status: "not loaded" | "loading" | "ready" | "failed";
  message: string;
  examples: number;
  words: number;
  annotations: Record<string, number>;
  labels: string[];
  fingerprint: string;
}

/** A text or a pair, and what to look for in it; `[MASK]` stands for the mask token of the model. */
export interface GallerySentence {
  text: string;
  text_b: string | null;
  title: string;
  look_for: string;
  citation: string;
}

/** What is known of a model: while it loads, since when; when it is ready, its size and task heads. */
export interface ModelState {
  name: string;
  status: "not loaded" | "loading" | "ready" | "failed";
  since: number | null;
  seconds: number | null;
  message: string;
  layers: number;
  heads: number;
  max_tokens: number;
  task_heads: string[];
  labels: string[];
  mask_token: string;
  causal: boolean;
  fingerprint: string;
}

/** What the server is, has loaded and is doing. */
export interface WorkbenchState {
  version: string;
  models: ModelState[];
  corpora: CorpusState[];
  against: string;
  jobs: Record<string, number>;
  gallery: GallerySentence[];
  max_tokens: number;
  max_characters: number;
}

/** A model by its public name. */
export interface ModelRequest {
  model: string;
}

/** The state of the server after a request. */
export interface ModelAnswer {
  state: WorkbenchState;
}

/** What is done with the token at a position, counted from 0 before any edit. */
export interface EditRequest {
  position: number;
  action: "mask" | "replace" | "delete";
  text?: string;
}

/** Heads by name (`4-4`) and layers by number, both as they are in the unchanged model; empty: unchanged. */
export interface InterventionRequest {
  off?: string[];
  uniform?: string[];
  mean?: string[];
  keep?: string[];
  layers_off?: number[];
}

/** What is looked at: only these layers (from 1; null: all) and quantities are computed and sent. `client` and `sequence` let a newer request of the same page end an older one. */
export interface LiveRequest {
  text?: string;
  text_b?: string | null;
  example?: number | null;
  corpus?: string;
  model?: string;
  edits?: EditRequest[];
  intervention?: InterventionRequest;
  layers?: number[] | null;
  quantities?: ("attention" | "norm" | "gradient")[];
  neurons?: boolean;
  rollout?: boolean;
  measures?: boolean;
  strips?: boolean;
  predictions?: boolean;
  layer_predictions?: boolean;
  n_candidates?: number;
  client?: string;
  sequence?: number;
}

/** A span of tokens from `start` to `end`, both included, and the product of its ends' probabilities. */
export interface AnswerPrediction {
  start: number;
  end: number;
  text: string;
  probability: number;
}

/** A token, class or tag and its probability. */
export interface Candidate {
  text: string;
  probability: number;
}

/** The classes of a task head by probability; `score` is the output of a regression, which has no classes. */
export interface ClassPrediction {
  task_head: string;
  candidates: Candidate[];
  score: number | null;
}

/** The predictions read from the states of one layer; layer 0 are the embeddings. */
export interface LayerPredictions {
  layer: number;
  predictions: Predictions;
}

/** All that the task heads of a model say about one text; a model without a task head says nothing. */
export interface Predictions {
  masked_tokens: TokenPrediction[];
  next_token: Candidate[];
  classes: ClassPrediction[];
  tags: TokenPrediction[];
  answers: AnswerPrediction[];
}

/** A number of every head on this one text: (layer, head), and what uniform attention gives. The latter is null in causal models, where each token sees another number of tokens. */
export interface SentenceMeasure {
  name: string;
  unit: string;
  values: number[][];
  uniform: number | null;
}

/** The token that each token attends to most, and its weight, in every head: (layer, head, token). */
export interface StrongestTargets {
  targets: number[][][];
  weights: number[][][];
}

/** The most probable tokens, or tags, at one position. */
export interface TokenPrediction {
  position: number;
  token: string;
  candidates: Candidate[];
}

/** One text in one model. The chunks of `run` are the layers in `layers`, by their numbers in the unchanged model; `running_layers` are those that run. `rollout` has one head. `changes` says what was changed in the model. */
export interface LiveAnswer {
  model: string;
  scope: string;
  sequence: number;
  n_tokens: number;
  running_layers: number[];
  layers: number[];
  run: ModelRun;
  rollout: QuantisedRows | null;
  measures: SentenceMeasure[];
  strips: StrongestTargets | null;
  predictions: Predictions | null;
  layer_predictions: LayerPredictions[];
  changes: Record<string, string[]>;
  notes: string[];
  milliseconds: number;
}

/** A live request whose intervention is compared with the unchanged model and with a random control. */
export interface InterveneRequest {
  text?: string;
  text_b?: string | null;
  example?: number | null;
  corpus?: string;
  model?: string;
  edits?: EditRequest[];
  intervention?: InterventionRequest;
  layers?: number[] | null;
  quantities?: ("attention" | "norm" | "gradient")[];
  neurons?: boolean;
  rollout?: boolean;
  measures?: boolean;
  strips?: boolean;
  predictions?: boolean;
  layer_predictions?: boolean;
  n_candidates?: number;
  client?: string;
  sequence?: number;
  control_seed?: number;
}

/** What is to be computed, with the options of its declaration. `analysis`: one by name, with `options` and perhaps `like` a paper. `claims` and `report`: all claims, or those of `papers`, on the first `limit` examples; `full` adds those that take minutes. `links` and `states`: the indices of the search by links and by similarity. */
export interface JobRequest {
  kind: "analysis" | "claims" | "report" | "links" | "states";
  analysis?: string;
  options?: Record<string, string | number | boolean | null>;
  like?: string;
  papers?: string[];
  limit?: number | null;
  full?: boolean;
  model?: string;
  against?: string;
  corpus?: string;
}

/** Predictions before and after, and after the same intervention on random other heads or layers. This is one text: whether the change is more than chance is a question to the corpus (interventions/head_ablation). */
export interface InterveneAnswer {
  scope: string;
  before: Predictions;
  after: Predictions;
  control: Predictions | null;
  control_intervention: InterventionRequest | null;
  changes: Record<string, string[]>;
  notes: string[];
  corpus_job: JobRequest | null;
}

/** A pinned picture: what was looked at, the state of the view, as in its address, and a caption. */
export interface PinRequest {
  live: LiveRequest;
  against?: LiveRequest | null;
  state?: string;
  caption?: string;
}

/** Pins that become one page. */
export interface KeepRequest {
  title?: string;
  pins: PinRequest[];
}

/** The command line and the Python code that make again what is seen; `notes` say what they cannot. */
export interface KeptCommands {
  command_line: string;
  python: string;
  notes: string[];
}

/** Papers by key, separated by commas. */
export interface CitationRequest {
  keys: string;
}

/** A head by name, such as 4-4. */
export interface HeadRequest {
  head: string;
  model?: string;
  corpus?: string;
}

/** A published finding whose numbers are those of this head. */
export interface HeadClaim {
  id: string;
  claim: string;
  paper: string;
  verdict: string;
  answer: string;
  settings: string;
}

/** A measure of the head: its estimate, baselines, and rank among all heads (1: stands out most). `effect_size` is the distance from the mean of all heads in standard deviations of the heads. A p value has neither: it is one of `n_heads` tests, and is compared with the significance level. Nor has a number that is the same for all heads. `settings` says what was not as by default when the analysis ran. */
export interface HeadNumber {
  analysis: string;
  settings: string;
  measure: string;
  unit: string;
  is_p_value: boolean;
  value: number | null;
  low: number | null;
  high: number | null;
  interval: string;
  n: number;
  baselines: Record<string, number | null>;
  rank: number | null;
  n_heads: number;
  effect_size: number | null;
}

/** A category, the number of links in it, their proportion, and the proportion that chance gives. */
export interface HistogramBar {
  category: string;
  count: number;
  proportion: number;
  base_rate: number;
}

/** A link in a text of the corpus: the words of the text, the two that are linked, and the weight. */
export interface LinkExample {
  example: number;
  words: string[];
  source: number;
  target: number;
  weight: number;
}

/** The links of a head by one property; `base` says what the base rates are. */
export interface LinkHistogram {
  name: string;
  base: string;
  n: number;
  bars: HistogramBar[];
}

/** A part of the card that has not been computed, and the job that computes it; `reason` if none can. */
export interface MissingPart {
  part: string;
  kind: string;
  analysis: string;
  reason: string;
}

/** A head that attends most to the same words, in this proportion of `n` words; `mean` is that of all heads. */
export interface SimilarHeadAnswer {
  head: string;
  agreement: number;
  mean: number;
  n: number;
}

/** One head over the corpus; what has not been computed is in `missing`, not left out in silence. `citations` are keys of the papers that its numbers, labels and claims follow. */
export interface HeadCard {
  head: string;
  model: string;
  corpus: string;
  labels: HeadLabel[];
  numbers: HeadNumber[];
  claims: HeadClaim[];
  cost_of_removal: HeadNumber[];
  similar: SimilarHeadAnswer[];
  strongest: LinkExample[];
  random: LinkExample[];
  missed: LinkExample[];
  missed_label: string;
  missed_note: string;
  histograms: LinkHistogram[];
  missing: MissingPart[];
  citations: string[];
}

/** A stored result by its analysis, with default options. */
export interface ResultRequest {
  analysis: string;
  model?: string;
  corpus?: string;
}

/** The model and corpus whose stored measures of heads are asked for. */
export interface MeasureRequest {
  model?: string;
  corpus?: string;
}

/** The measures and labels of all heads that results in the store give, over the corpus. */
export interface MeasureList {
  measures: HeadMeasure[];
  labels: HeadLabel[];
}

/** What a text must have, all in one word: form in any case, tag and relation; and the label of the example. */
export interface CorpusRequest {
  corpus?: string;
  word?: string;
  pos?: string;
  relation?: string;
  label?: string;
  start?: number;
  count?: number;
}

/** An example of the corpus; `index` is counted from 0. */
export interface BrowsedExample {
  index: number;
  id: string;
  kind: string;
  label: string | null;
  segments: BrowsedSegment[];
}

/** A text of an example with the annotations of its words, and the words that the search found. */
export interface BrowsedSegment {
  text: string;
  words: string[];
  pos: string[] | null;
  relations: string[] | null;
  governors: number[] | null;
  matches: number[];
}

/** A page of the examples that fit, of `n_examples` that do, of `total` in the corpus. `n_words` words fit, of `total_words`. */
export interface CorpusPage {
  corpus: string;
  start: number;
  n_examples: number;
  total: number;
  n_words: number;
  total_words: number;
  examples: BrowsedExample[];
}

/** What a word must be; empty fields say nothing. */
export interface PatternRequest {
  word?: string;
  pos?: string;
  relation?: string;
}

/** A search in words (`4-4 NOUN -> VERB > 0.5`), or by its parts if `query` is empty. */
export interface LinkRequest {
  query?: string;
  head?: string;
  source?: PatternRequest;
  target?: PatternRequest;
  min_weight?: number;
  relation?: string;
  to_dependent?: boolean;
  offset?: number | null;
  model?: string;
  corpus?: string;
  start?: number;
  count?: number;
}

/** The links that were found, strongest first, and how many there are beside chance. `n_links` of `n_pairs` pairs of words that fit are linked. Of `n_source_links` links from words that fit the source, `proportion` [low, high] fit; by chance `chance` would, and `expected` links: the same links to random other words of the sentence. If the search is not `complete`, weaker links than 1/4 may be missing from the counts. */
export interface LinkAnswer {
  head: string;
  n_links: number;
  n_pairs: number;
  n_source_links: number;
  proportion: number | null;
  low: number | null;
  high: number | null;
  chance: number | null;
  expected: number;
  complete: boolean;
  summary: string;
  start: number;
  links: LinkExample[];
}

/** A token of the text by position, and a layer; layer 0 are the embeddings. The state is that of its word. */
export interface NeighbourRequest {
  text?: string;
  text_b?: string | null;
  example?: number | null;
  corpus?: string;
  model?: string;
  edits?: EditRequest[];
  position: number;
  layer: number;
  count?: number;
}

/** A word of the corpus in its text, and the cosine of its state with that of the token. */
export interface NeighbourWord {
  example: number;
  words: string[];
  word: number;
  cosine: number;
}

/** The nearest of `n` words; `chance` is the mean cosine of random pairs of words at this layer. */
export interface NeighbourAnswer {
  word: string;
  layer: number;
  n: number;
  chance: number | null;
  neighbours: NeighbourWord[];
}

/** An analysis as it is declared. */
export interface AnalysisAnswer {
  name: string;
  version: number;
  question: string;
  description: string;
  special_tokens: string;
  citations: string[];
  annotations: string[];
  needs_against: boolean;
  needs_task_head: string | null;
  presets: string[];
  options: OptionAnswer[];
}

/** An option of an analysis; `choices` are all its values, or its values besides those of `type`. `minimum` and `maximum` are the ends of the range of a number, which need not belong to it. */
export interface OptionAnswer {
  name: string;
  flag: string;
  type: string;
  default: string | number | boolean | null;
  minimum: number | null;
  maximum: number | null;
  choices: string[];
  description: string;
}

/** All analyses. */
export interface AnalysisList {
  analyses: AnalysisAnswer[];
}

/** A claim; `slow` ones take minutes and are run with `full`, or by their paper. */
export interface ClaimAnswer {
  id: string;
  statement: string;
  paper: string;
  section: string;
  analyses: string[];
  slow: boolean;
}

/** All claims. */
export interface ClaimList {
  claims: ClaimAnswer[];
}

/** A job and how far it is; `fraction` and `seconds_left` are null if they are not known. */
export interface JobAnswer {
  id: string;
  title: string;
  request: JobRequest;
  state: "queued" | "running" | "done" | "failed" | "cancelled";
  created: number;
  started: number | null;
  finished: number | null;
  restarts: number;
  step: string;
  step_fraction: number;
  fraction: number | null;
  estimated_seconds: number | null;
  seconds_left: number | null;
  problem: Problem | null;
  has_result: boolean;
  has_report: boolean;
}

/** A refused request; `paragraph` is the three sentences together. */
export interface Problem {
  problem: string;
  expected: string;
  remedy: string;
  paragraph: string;
}

/** All jobs, newest first. */
export interface JobList {
  jobs: JobAnswer[];
}

/** A job by its id. */
export interface JobIdRequest {
  id: string;
}

/** The figure of a finished analysis, light or dark; text keeps its size whatever the width. */
export interface FigureRequest {
  id: string;
  theme?: "light" | "dark";
  width_mm?: number;
}

/** Request and answer of each endpoint. */
export interface Endpoints {
  "GET api/state": { request: EmptyRequest; answer: WorkbenchState };
  "POST api/models/load": { request: ModelRequest; answer: ModelAnswer };
  "POST api/live": { request: LiveRequest; answer: LiveAnswer };
  "POST api/intervene": { request: InterveneRequest; answer: InterveneAnswer };
  "POST api/keep": { request: KeepRequest; answer: string };
  "POST api/keep/csv": { request: LiveRequest; answer: string };
  "POST api/commands": { request: LiveRequest; answer: KeptCommands };
  "GET api/bibtex": { request: CitationRequest; answer: string };
  "GET api/heads/{head}": { request: HeadRequest; answer: HeadCard };
  "GET api/results": { request: ResultRequest; answer: unknown };
  "GET api/measures": { request: MeasureRequest; answer: MeasureList };
  "GET api/corpus": { request: CorpusRequest; answer: CorpusPage };
  "POST api/links": { request: LinkRequest; answer: LinkAnswer };
  "POST api/neighbours": { request: NeighbourRequest; answer: NeighbourAnswer };
  "GET api/analyses": { request: EmptyRequest; answer: AnalysisList };
  "GET api/claims": { request: EmptyRequest; answer: ClaimList };
  "GET api/jobs": { request: EmptyRequest; answer: JobList };
  "POST api/jobs": { request: JobRequest; answer: JobAnswer };
  "GET api/jobs/{id}": { request: JobIdRequest; answer: JobAnswer };
  "DELETE api/jobs/{id}": { request: JobIdRequest; answer: JobList };
  "POST api/jobs/{id}/cancel": { request: JobIdRequest; answer: JobAnswer };
  "POST api/jobs/{id}/retry": { request: JobIdRequest; answer: JobAnswer };
  "GET api/jobs/{id}/result": { request: JobIdRequest; answer: unknown };
  "GET api/jobs/{id}/report": { request: JobIdRequest; answer: string };
  "GET api/jobs/{id}/csv": { request: JobIdRequest; answer: string };
  "GET api/jobs/{id}/figure": { request: FigureRequest; answer: string };
  "GET api/jobs/{id}/bibtex": { request: JobIdRequest; answer: string };
  "GET api/jobs/{id}/commands": { request: JobIdRequest; answer: KeptCommands };
}
