// The weights on screen for a state: combine heads and layers, merge tokens into words, select, renormalise, filter.
// Heads and layers are combined before tokens are merged into words.
import { largestSize } from "./colours";
import type { HeadWeights, Source } from "./source";
import { keepOf, type State } from "./state";
import { visible } from "./text";

/** A row or column: a token, or the tokens of a word; `source` is the text of an unknown token. */
export interface Unit {
  text: string;
  source: string;
  tokens: number[];
  special: boolean;
  segment: number;
}

/** One matrix on screen: (row, column) weights, NaN where filtered out; `all` are those before the filter. */
export interface Series {
  name: string;
  short: string;
  colour: number;
  weights: Float32Array;
  all: Float32Array;
}

export interface Picture {
  units: Unit[];
  rows: number[];
  columns: number[];
  series: Series[];
  signed: boolean;
  fraction: number; // of the weight of the rows shown that is on screen
  step: number; // the largest step in which weights are stored, 0 if they are exact
  renormalised: boolean;
}

export function layersNeeded(state: State, source: Source): number[] {
  if (state.across === "one") return [state.layer];
  const last = state.across === "rollout" ? state.layer + 1 : source.layers;
  return Array.from({ length: last }, (_, layer) => layer);
}

export function unitsOf(source: Source, kind: State["units"]): Unit[] {
  const { tokens, words } = source.run;
  const units: Unit[] = [];
  let word = -1;
  tokens.forEach((token, index) => {
    const last = units[units.length - 1];
    if (kind === "words" && token.word_index >= 0 && token.word_index === word) last.tokens.push(index);
    else {
      const isWord = kind === "words" && token.word_index >= 0;
      const text = isWord ? words[token.word_index] : token.text;
      units.push({ text: visible(text), source: isWord || !token.source ? "" : visible(token.source), tokens: [index], special: token.special, segment: token.segment });
    }
    word = token.word_index;
  });
  return units;
}

/** A unit in a sentence: its text, and that of an unknown token. */
export function unitName({ text, source }: Unit): string {
  return source ? `${text} (${source})` : text;
}

export function compose(state: State, source: Source, headWeights: HeadWeights = source.quantities[state.quantity]): Picture {
  const layout = layoutOf(state, source);
  const { units, rows, columns } = layout;
  const signed = source.run.quantities[state.quantity].weights.signed;
  let total = 0;
  let shown = 0;
  const series = seriesOf(state, source, headWeights).map((matrix) => {
    const merged = mergeTokens(units, matrix.weights, source.nTokens);
    const rowTotals = rowSums(merged, units.length, rows);
    const all = shapeWeights(matrix.weights, layout, { ...state, keep: "all" }, merged);
    const weights = keepOf(state) === "all" ? all : all.slice();
    filter(weights, columns.length, state);
    rows.forEach((_, row) => {
      total += rowTotals[row];
      const sum = absoluteRowSum(weights, columns.length, row);
      shown += state.special === "renormalise" ? sum * selectedSum(merged, units.length, rows[row], columns) : sum;
    });
    return { ...matrix, weights, all };
  });
  const fraction = total === 0 ? 1 : shown / total;
  const { levels } = source.run.quantities[state.quantity].weights;
  const step = levels ? largestSize(series.map(({ weights }) => weights)) / levels : 0;
  return { ...layout, series, signed, fraction, step, renormalised: state.special === "renormalise" };
}

/** The same picture for uniform attention over the visible tokens, unfiltered. */
export function uniformPicture(state: State, source: Source): Picture {
  // All heads are the same then, except for the value norms they may be weighted by.
  const heads = state.across === "norm" || state.fusion === "norm" ? state.heads : state.heads.slice(0, 1);
  return compose({ ...state, heads, keep: "all" as const }, source, source.uniform);
}

/** The units that are rows and columns. */
export interface Layout {
  units: Unit[];
  rows: number[];
  columns: number[];
}

export function layoutOf(state: State, source: Source): Layout {
  const units = unitsOf(source, state.units);
  return { units, ...rowsAndColumns(units, state) };
}

/** Weights between tokens as shown: merged, selected, renormalised, filtered. */
export function shapeWeights(matrix: Float32Array, { units, rows, columns }: Layout, state: State, merged?: Float32Array): Float32Array {
  const full = merged ?? mergeTokens(units, matrix, Math.sqrt(matrix.length));
  const count = units.length;
  const weights = rows.length === count && columns.length === count ? full : selectCells(full, count, rows, columns);
  if (state.special === "renormalise") renormalise(weights, columns.length, rowSums(weights, columns.length, null));
  filter(weights, columns.length, state);
  return weights;
}

/** The absolute weight of a row on the selected columns. */
function selectedSum(merged: Float32Array, width: number, row: number, columns: number[]): number {
  return columns.reduce((sum, column) => sum + Math.abs(merged[row * width + column]), 0);
}

function rowsAndColumns(units: Unit[], state: State): { rows: number[]; columns: number[] } {
  const candidates = units.map((_, index) => index).filter((index) => state.special === "show" || state.special === "fade" || !units[index].special);
  if (state.part === "all") return { rows: candidates, columns: candidates };
  const inside = (letter: string) => candidates.filter((index) => units[index].segment === (letter === "a" ? 0 : 1));
  return { rows: inside(state.part[0]), columns: inside(state.part[1]) };
}

/** Whether layers can be multiplied: all of them are there, and attend to the tokens they come from. */
export function canRollOut({ run }: Source): boolean {
  return run.role !== "cross" && !run.layer_numbers.length && !run.head_numbers.length;
}

/** Whether weights can be multiplied by value norms: only attention, and only if the norms are known. */
export function canWeightByNorm(state: State, source: Source): boolean {
  return source.valueNorms !== null && source.run.quantities[state.quantity].name === "attention";
}

function seriesOf(state: State, source: Source, headWeights: HeadWeights): Omit<Series, "all">[] {
  const { heads, layer, across, fusion } = state;
  if (across === "rollout") {
    const weights = rollout(state, source, headWeights);
    return [{ name: `rollout up to layer ${source.layerNumber(layer)}`, short: "rollout", colour: 0, weights }];
  }
  const layers = layersNeeded(state, source);
  const layerText = across === "one" ? `layer ${source.layerNumber(layer)}` : `${NAMES[across]} over layers`;
  if (fusion === "each") {
    return heads.map((head) => {
      const weights = fuseLayers(state, source, layers, (index) => headWeights.head(index, head), [head]);
      const name = across === "one" ? source.nameOf(layer, head) : `head ${source.headNumber(head)}, ${layerText}`;
      return { name, short: across === "one" ? name : `·-${source.headNumber(head)}`, colour: head, weights };
    });
  }
  const weights = fuseLayers(state, source, layers, (index) => fuseHeads(state, source, headWeights, index), heads);
  return [{ name: `${NAMES[fusion]} of ${heads.length} heads, ${layerText}`, short: NAMES[fusion], colour: 0, weights }];
}

const NAMES = { mean: "mean", max: "maximum", norm: "norm-weighted mean" };

/** The selected heads of a layer, combined. */
function fuseHeads(state: State, source: Source, headWeights: HeadWeights, layer: number): Float32Array {
  if (state.fusion !== "norm") return fuse(state.heads.map((head) => () => headWeights.head(layer, head)), state.fusion === "max");
  const weighted = fuse(state.heads.map((head) => () => weightByNorm(headWeights.head(layer, head), valueNormsOf(source, layer, [head]))), false);
  // If layers are norm-weighted too, rows keep their norms until all layers are summed.
  return state.across === "norm" ? weighted : normaliseRows(weighted, source.nTokens);
}

function fuseLayers(state: State, source: Source, layers: number[], matrixOf: (layer: number) => Float32Array, heads: number[]): Float32Array {
  if (state.across !== "norm") return fuse(layers.map((layer) => () => matrixOf(layer)), state.across === "max");
  const isWeighted = state.fusion === "norm";
  const weighted = layers.map((layer) => () => (isWeighted ? matrixOf(layer) : weightByNorm(matrixOf(layer), valueNormsOf(source, layer, heads))));
  return normaliseRows(fuse(weighted, false), source.nTokens);
}

/** (token,) norm of f(x), mean over the heads. */
function valueNormsOf(source: Source, layer: number, heads: number[]): Float32Array {
  return fuse(heads.map((head) => () => source.valueNorms!.head(layer, head)), false);
}

/** Each column times the value norm of its token. */
function weightByNorm(matrix: Float32Array, norms: Float32Array): Float32Array {
  for (let i = 0; i < matrix.length; i++) matrix[i] *= norms[i % norms.length];
  return matrix;
}

function normaliseRows(matrix: Float32Array, width: number): Float32Array {
  renormalise(matrix, width, rowSums(matrix, width, null));
  return matrix;
}

/** The mean or maximum of several matrices, computed one after the other. */
function fuse(matrices: (() => Float32Array)[], largest: boolean): Float32Array {
  const result = matrices[0]();
  for (let index = 1; index < matrices.length; index++) {
    const next = matrices[index]();
    if (largest) for (let i = 0; i < result.length; i++) result[i] = Math.max(result[i], next[i]);
    else for (let i = 0; i < result.length; i++) result[i] += next[i];
  }
  if (!largest && matrices.length > 1) for (let i = 0; i < result.length; i++) result[i] /= matrices.length;
  return result;
}

/** Attention rollout: layers multiplied from the first, each mixed half and half with the identity (Abnar and Zuidema 2020). */
function rollout(state: State, source: Source, headWeights: HeadWeights): Float32Array {
  const n = source.nTokens;
  let rolled: Float32Array | null = null;
  for (let layer = 0; layer <= state.layer; layer++) {
    const key = `${layer} ${state.heads} ${state.fusion}`;
    const cached = headWeights.rolloutCache.get(key);
    if (cached) {
      rolled = cached;
      continue;
    }
    const mixed = normaliseRows(fuseHeads(state, source, headWeights, layer), n);
    for (let i = 0; i < mixed.length; i++) mixed[i] *= 0.5;
    for (let i = 0; i < n; i++) mixed[i * n + i] += 0.5;
    rolled = rolled ? product(mixed, rolled, n) : mixed;
    headWeights.rolloutCache.set(key, rolled);
  }
  return rolled!.slice();
}

function product(a: Float32Array, b: Float32Array, n: number): Float32Array {
  const result = new Float32Array(n * n);
  for (let i = 0; i < n; i++) {
    for (let k = 0; k < n; k++) {
      const weight = a[i * n + k];
      if (weight === 0) continue;
      for (let j = 0; j < n; j++) result[i * n + j] += weight * b[k * n + j];
    }
  }
  return result;
}

/** Attention to a word is the sum over its tokens, attention from a word the mean over them. */
function mergeTokens(units: Unit[], weights: Float32Array, n: number): Float32Array {
  const count = units.length;
  if (count === n) return weights;
  const merged = new Float32Array(count * count);
  units.forEach((from, row) => {
    for (const token of from.tokens) {
      units.forEach((to, column) => {
        let sum = 0;
        for (const target of to.tokens) sum += weights[token * n + target];
        merged[row * count + column] += sum / from.tokens.length;
      });
    }
  });
  return merged;
}

function selectCells(from: Float32Array, width: number, rows: number[], columns: number[]): Float32Array {
  const to = new Float32Array(rows.length * columns.length);
  let position = 0;
  for (const row of rows) for (const column of columns) to[position++] = from[row * width + column];
  return to;
}

function rowSums(weights: Float32Array, width: number, rows: number[] | null): Float32Array {
  const selection = rows ?? Array.from({ length: width ? weights.length / width : 0 }, (_, row) => row);
  return Float32Array.from(selection, (row) => absoluteRowSum(weights, width, row));
}

/** Sum of absolute weights; filtered ones count as 0. */
function absoluteRowSum(weights: Float32Array, width: number, row: number): number {
  let sum = 0;
  for (let i = row * width; i < (row + 1) * width; i++) {
    const size = Math.abs(weights[i]);
    if (size === size) sum += size;
  }
  return sum;
}

function renormalise(weights: Float32Array, width: number, sums: Float32Array): void {
  sums.forEach((sum, row) => {
    if (sum > 0) for (let i = row * width; i < (row + 1) * width; i++) weights[i] /= sum;
  });
}

function filter(weights: Float32Array, width: number, state: State): void {
  const keep = keepOf(state);
  if (keep === "mass") {
    for (let start = 0; start < weights.length; start += width) keepMass(weights.subarray(start, start + width), state.mass);
  } else if (keep === "threshold") {
    for (let i = 0; i < weights.length; i++) if (Math.abs(weights[i]) < state.threshold) weights[i] = NaN;
  } else if (keep === "top" && state.top < width) {
    for (let start = 0; start < weights.length; start += width) {
      const row = weights.subarray(start, start + width);
      const top = strongest(row, state.top).map((index): [number, number] => [index, row[index]]);
      row.fill(NaN);
      for (const [index, weight] of top) row[index] = weight;
    }
  }
}

/** Keep the fewest weights that hold this share of the row's; of equal ones the first. */
function keepMass(row: Float32Array, mass: number): void {
  const sizes = row.map(Math.abs).sort();
  const total = sizes.reduce((sum, size) => sum + size, 0);
  let [kept, sum] = [0, 0];
  while (kept < sizes.length && sum < mass * total - 1e-6 * total) sum += sizes[sizes.length - ++kept];
  if (kept === sizes.length) return;
  const least = kept ? sizes[sizes.length - kept] : Infinity;
  let equal = kept;
  for (let i = sizes.length - 1; i >= 0 && sizes[i] > least; i--) equal--;
  for (let i = 0; i < row.length; i++) {
    const size = Math.abs(row[i]);
    if (size < least || (size === least && equal-- <= 0)) row[i] = NaN;
  }
}

/** The positions of the strongest weights; of equal ones the first. */
function strongest(row: Float32Array, count: number): number[] {
  const best: number[] = [];
  for (let i = 0; i < row.length; i++) {
    const size = Math.abs(row[i]);
    if (best.length === count && size <= Math.abs(row[best[count - 1]])) continue;
    let position = best.length;
    while (position > 0 && Math.abs(row[best[position - 1]]) < size) position--;
    best.splice(position, 0, i);
    if (best.length > count) best.pop();
  }
  return best;
}
