// From the state to the weights on screen: aggregate heads and layers, merge pieces, leave out, renormalise, filter.
// Aggregation happens on pieces, before they are merged into words.
import type { Maps, Source } from "./source";
import type { State } from "./state";

/** What stands for one row or column: a piece, or the pieces of a word. */
export interface Unit {
  text: string;
  pieces: number[];
  special: boolean;
  segment: number;
}

/** One map on screen: (row, column) weights, NaN where the filter leaves one out. */
export interface Series {
  name: string;
  short: string;
  colour: number;
  weights: Float32Array;
}

export interface Picture {
  units: Unit[];
  rows: number[];
  columns: number[];
  series: Series[];
  signed: boolean;
  share: number; // of all the weight of the rows shown, the part that is on screen
  renormalised: boolean;
}

export function layersNeeded(state: State, source: Source): number[] {
  if (state.across === "one") return [state.layer];
  const last = state.across === "rollout" ? state.layer + 1 : source.layers;
  return Array.from({ length: last }, (_, layer) => layer);
}

export function unitsOf(source: Source, kind: State["units"]): Unit[] {
  const { pieces, words } = source.run;
  const units: Unit[] = [];
  let word = -1;
  pieces.forEach((piece, index) => {
    const last = units[units.length - 1];
    if (kind === "words" && piece.word >= 0 && piece.word === word) last.pieces.push(index);
    else {
      const text = kind === "words" && piece.word >= 0 ? words[piece.word] : piece.text;
      units.push({ text: visible(text), pieces: [index], special: piece.special, segment: piece.segment });
    }
    word = piece.word;
  });
  return units;
}

/** Text with nothing invisible in it. */
export function visible(text: string): string {
  if (text.trim() === "") return text === "" ? "∅" : "␣";
  return text.replace(/[\u0000-\u001f]/g, (sign) => String.fromCharCode(0x2400 + sign.charCodeAt(0)));
}

export function compose(state: State, source: Source, maps: Maps = source.quantities[state.quantity]): Picture {
  const layout = laidOut(state, source);
  const { units, rows, columns } = layout;
  const signed = source.run.quantities[state.quantity].maps.signed;
  let all = 0;
  let shown = 0;
  const series = seriesOf(state, source, maps).map((one) => {
    const merged = mergeInto(units, one.weights, source.pieces);
    const whole = rowSums(merged, units.length, rows);
    const weights = shaped(one.weights, layout, state, merged);
    rows.forEach((_, row) => {
      all += whole[row];
      const sum = sumOfRow(weights, columns.length, row);
      shown += state.special === "renormalise" ? sum * restOf(merged, units.length, rows[row], columns) : sum;
    });
    return { ...one, weights };
  });
  const share = all === 0 ? 1 : shown / all;
  return { ...layout, series, signed, share, renormalised: state.special === "renormalise" };
}

/** The same picture of heads that attend alike to all they can see, whatever their own weights; nothing is filtered out. */
export function evenly(state: State, source: Source): Picture {
  // All heads are alike then, but for the lengths they may be weighed by.
  const heads = state.across === "norm" || state.fusion === "norm" ? state.heads : state.heads.slice(0, 1);
  return compose({ ...state, heads, keep: "all" }, source, source.even);
}

/** Which tokens are rows and columns. */
export interface Layout {
  units: Unit[];
  rows: number[];
  columns: number[];
}

export function laidOut(state: State, source: Source): Layout {
  const units = unitsOf(source, state.units);
  return { units, ...places(units, state) };
}

/** The map of pieces as it is shown: merged, without what is left out, renormalised, filtered. */
export function shaped(map: Float32Array, { units, rows, columns }: Layout, state: State, merged?: Float32Array): Float32Array {
  const whole = merged ?? mergeInto(units, map, Math.sqrt(map.length));
  const count = units.length;
  const weights = rows.length === count && columns.length === count ? whole : cut(whole, count, rows, columns);
  if (state.special === "renormalise") renormalise(weights, columns.length, rowSums(weights, columns.length, null));
  filter(weights, columns.length, state);
  return weights;
}

/** What a row holds of the columns shown. */
function restOf(merged: Float32Array, width: number, row: number, columns: number[]): number {
  return columns.reduce((sum, column) => sum + Math.abs(merged[row * width + column]), 0);
}

function places(units: Unit[], state: State): { rows: number[]; columns: number[] } {
  const every = units.map((_, index) => index).filter((index) => state.special === "show" || !units[index].special);
  if (state.part === "all") return { rows: every, columns: every };
  const inside = (letter: string) => every.filter((index) => units[index].segment === (letter === "a" ? 0 : 1));
  return { rows: inside(state.part[0]), columns: inside(state.part[1]) };
}

/** Whether maps are weighed by the lengths of what is taken over: only attention is, and only where they are known. */
export function weighable(state: State, source: Source): boolean {
  return source.lengths !== null && source.run.quantities[state.quantity].name === "attention";
}

function seriesOf(state: State, source: Source, maps: Maps): Series[] {
  const { heads, layer, across, fusion } = state;
  if (across === "rollout") {
    const weights = rollout(state, source, maps);
    return [{ name: `rollout up to layer ${layer + 1}`, short: "rollout", colour: 0, weights }];
  }
  const layers = layersNeeded(state, source);
  const where = across === "one" ? `layer ${layer + 1}` : `${NAMES[across]} over layers`;
  if (fusion === "each") {
    return heads.map((head) => {
      const weights = acrossLayers(state, source, layers, (one) => maps.head(one, head), [head]);
      const name = across === "one" ? `${layer + 1}-${head + 1}` : `head ${head + 1}, ${where}`;
      return { name, short: across === "one" ? name : `·-${head + 1}`, colour: head, weights };
    });
  }
  const weights = acrossLayers(state, source, layers, (one) => together(state, source, maps, one), heads);
  return [{ name: `${NAMES[fusion]} of ${heads.length} heads, ${where}`, short: NAMES[fusion], colour: 0, weights }];
}

const NAMES = { mean: "mean", max: "max", norm: "norm-weighted mean" };

/** The chosen heads of a layer as one map. */
function together(state: State, source: Source, maps: Maps, layer: number): Float32Array {
  if (state.fusion !== "norm") return fused(state.heads.map((head) => () => maps.head(layer, head)), state.fusion === "max");
  const weighted = fused(state.heads.map((head) => () => weighed(maps.head(layer, head), lengthsOf(source, layer, [head]))), false);
  // Layers that are weighed as well keep their lengths until all are summed.
  return state.across === "norm" ? weighted : scaledTo1(weighted, source.pieces);
}

function acrossLayers(state: State, source: Source, layers: number[], map: (layer: number) => Float32Array, heads: number[]): Float32Array {
  if (state.across !== "norm") return fused(layers.map((one) => () => map(one)), state.across === "max");
  const already = state.fusion === "norm";
  const weighted = layers.map((one) => () => (already ? map(one) : weighed(map(one), lengthsOf(source, one, heads))));
  return scaledTo1(fused(weighted, false), source.pieces);
}

/** (piece,) the length of f(x), mean over the heads. */
function lengthsOf(source: Source, layer: number, heads: number[]): Float32Array {
  return fused(heads.map((head) => () => source.lengths!.head(layer, head)), false);
}

/** Each column times the length of what is taken over from it. */
function weighed(map: Float32Array, lengths: Float32Array): Float32Array {
  for (let i = 0; i < map.length; i++) map[i] *= lengths[i % lengths.length];
  return map;
}

function scaledTo1(map: Float32Array, width: number): Float32Array {
  renormalise(map, width, rowSums(map, width, null));
  return map;
}

/** The mean, or the largest, of several maps, made one after the other. */
function fused(maps: (() => Float32Array)[], largest: boolean): Float32Array {
  const result = maps[0]();
  for (let index = 1; index < maps.length; index++) {
    const next = maps[index]();
    if (largest) for (let i = 0; i < result.length; i++) result[i] = Math.max(result[i], next[i]);
    else for (let i = 0; i < result.length; i++) result[i] += next[i];
  }
  if (!largest && maps.length > 1) for (let i = 0; i < result.length; i++) result[i] /= maps.length;
  return result;
}

/** Layers multiplied from the first up, half of each row staying in place (Abnar and Zuidema 2020). */
function rollout(state: State, source: Source, maps: Maps): Float32Array {
  const n = source.pieces;
  let rolled: Float32Array | null = null;
  for (let layer = 0; layer <= state.layer; layer++) {
    const key = `${layer} ${state.heads} ${state.fusion}`;
    const known = maps.rolled.get(key);
    if (known) {
      rolled = known;
      continue;
    }
    const shares = scaledTo1(together(state, source, maps, layer), n);
    for (let i = 0; i < shares.length; i++) shares[i] *= 0.5;
    for (let i = 0; i < n; i++) shares[i * n + i] += 0.5;
    rolled = rolled ? product(shares, rolled, n) : shares;
    maps.rolled.set(key, rolled);
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

/** Attention to a word is the sum over its pieces, attention from a word the mean over them. */
function mergeInto(units: Unit[], weights: Float32Array, n: number): Float32Array {
  const count = units.length;
  if (count === n) return weights;
  const merged = new Float32Array(count * count);
  units.forEach((from, row) => {
    for (const piece of from.pieces) {
      units.forEach((to, column) => {
        let sum = 0;
        for (const target of to.pieces) sum += weights[piece * n + target];
        merged[row * count + column] += sum / from.pieces.length;
      });
    }
  });
  return merged;
}

function cut(from: Float32Array, width: number, rows: number[], columns: number[]): Float32Array {
  const to = new Float32Array(rows.length * columns.length);
  let place = 0;
  for (const row of rows) for (const column of columns) to[place++] = from[row * width + column];
  return to;
}

function rowSums(weights: Float32Array, width: number, rows: number[] | null): Float32Array {
  const chosen = rows ?? Array.from({ length: width ? weights.length / width : 0 }, (_, row) => row);
  return Float32Array.from(chosen, (row) => sumOfRow(weights, width, row));
}

/** Of sizes, where weights have signs: what is left out counts nothing. */
function sumOfRow(weights: Float32Array, width: number, row: number): number {
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
  if (state.keep === "threshold") {
    for (let i = 0; i < weights.length; i++) if (Math.abs(weights[i]) < state.threshold) weights[i] = NaN;
  } else if (state.keep === "top" && state.top < width) {
    for (let start = 0; start < weights.length; start += width) {
      const row = weights.subarray(start, start + width);
      const kept = strongest(row, state.top).map((index): [number, number] => [index, row[index]]);
      row.fill(NaN);
      for (const [index, weight] of kept) row[index] = weight;
    }
  }
}

/** The places of the strongest few; of equal ones the first. */
function strongest(row: Float32Array, count: number): number[] {
  const best: number[] = [];
  for (let i = 0; i < row.length; i++) {
    const size = Math.abs(row[i]);
    if (best.length === count && size <= Math.abs(row[best[count - 1]])) continue;
    let place = best.length;
    while (place > 0 && Math.abs(row[best[place - 1]]) < size) place--;
    best.splice(place, 0, i);
    if (best.length > count) best.pop();
  }
  return best;
}
