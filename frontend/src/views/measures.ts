// Measures of heads: those of this text, computed here, and those of results over a corpus.
import type { HeadMeasure } from "../payload";
import type { Source } from "../source";

/** One number per head, layer after layer; NaN where there is none. */
export interface Measure {
  name: string;
  unit: string;
  source: string;
  interval: string; // the kind of low and high; empty if there are none
  values: number[];
  low: number[] | null;
  high: number[] | null;
  n: number[];
  baselines: { name: string; values: number[] }[];
  lowest: boolean; // whether the lowest value stands out
  is_p_value: boolean; // compared with its level, not ranked
  step: number; // smaller values cannot be told from 0, because of the steps in which weights are stored
}

export const THIS_TEXT = "this text";
const UNIFORM = "uniform attention";

interface TextMeasure {
  name: string;
  unit: string;
  row: (weights: Float32Array, start: number, n: number, from: number) => number; // NaN for rows without such a target
}

function textMeasures(source: Source): TextMeasure[] {
  const { tokens } = source.run;
  const share = "share of attention, mean over tokens";
  const targets = (name: string, positions: number[]): TextMeasure => ({
    name,
    unit: share,
    row: (weights, start) => positions.reduce((sum, position) => sum + weights[start + position], 0),
  });
  const offset = (name: string, by: number): TextMeasure => ({
    name,
    unit: share,
    row: (weights, start, n, from) => (from + by >= 0 && from + by < n ? weights[start + from + by] : NaN),
  });
  const positions = new Map<string, number[]>();
  tokens.forEach((token, index) => token.special && positions.set(token.text, [...(positions.get(token.text) ?? []), index]));
  return [
    { name: "largest weight", unit: "highest weight of a token, mean over tokens", row: (weights, start, n) => largest(weights, start, n) },
    { name: "entropy", unit: "nats, mean over tokens", row: (weights, start, n) => entropy(weights, start, n) },
    ...(source.run.role === "cross" ? [] : [offset("to previous token", -1), offset("to next token", 1), offset("to itself", 0)]),
    ...[...positions].slice(0, 4).map(([text, at]) => targets(`to ${text}`, at)),
  ];
}

function largest(weights: Float32Array, start: number, n: number): number {
  let max = 0;
  for (let i = start; i < start + n; i++) if (weights[i] > max) max = weights[i];
  return max;
}

function entropy(weights: Float32Array, start: number, n: number): number {
  let [sum, total] = [0, 0];
  for (let i = start; i < start + n; i++) {
    const weight = weights[i];
    if (weight <= 0) continue;
    sum -= weight * Math.log(weight);
    total += weight;
  }
  return total > 0 ? sum / total + Math.log(total) : 0;
}

/** The measures of this text, filled head by head. */
export class TextMeasures {
  readonly measures: Measure[];
  private readonly definitions: TextMeasure[];
  private readonly uniform = new Map<number | null, [number, number][]>(); // by attention window

  constructor(private readonly source: Source) {
    const count = source.layers * source.heads;
    const empty = () => new Array<number>(count).fill(NaN);
    const { levels } = source.quantities[0].quantised;
    this.definitions = textMeasures(source);
    this.measures = this.definitions.map(({ name, unit }) => ({
      name, unit, source: THIS_TEXT, interval: "", values: empty(), low: null, high: null, n: new Array<number>(count).fill(0), baselines: [{ name: UNIFORM, values: empty() }], lowest: false, is_p_value: false, step: levels ? 0.5 / levels : 0,
    }));
  }

  has(layer: number, head: number): boolean {
    return this.measures[0].n[layer * this.source.heads + head] > 0;
  }

  /** Measure one head by its attention between tokens. */
  add(layer: number, head: number, attention: Float32Array): void {
    const { source, measures } = this;
    const index = layer * source.heads + head;
    const [means, uniform] = [this.means(attention), this.uniformMeans(layer)];
    measures.forEach((measure, i) => {
      [measure.values[index], measure.n[index]] = means[i];
      measure.baselines[0].values[index] = uniform[i][0];
    });
  }

  private uniformMeans(layer: number): [number, number][] {
    const window = this.source.run.attention_windows[layer] ?? null;
    const means = this.uniform.get(window) ?? this.means(this.source.uniform.head(layer, 0));
    this.uniform.set(window, means);
    return means;
  }

  /** For each measure its mean over the rows that have a value, and their number. */
  private means(weights: Float32Array): [number, number][] {
    const n = this.source.nTokens;
    return this.definitions.map(({ row }) => {
      let [sum, count] = [0, 0];
      for (let from = this.source.firstRow; from < n; from++) {
        const value = row(weights, from * n, n, from);
        if (value !== value) continue;
        sum += value;
        count++;
      }
      return [count ? sum / count : NaN, count];
    });
  }
}

export function corpusMeasures(measures: HeadMeasure[]): Measure[] {
  const flat = (rows: (number | null)[][]) => rows.flat().map((value) => value ?? NaN);
  return measures.map((measure) => ({
    ...measure,
    step: 0,
    values: flat(measure.values),
    low: flat(measure.low),
    high: flat(measure.high),
    n: measure.n.flat(),
    baselines: measure.baselines.map(({ name, values }) => ({ name, values: flat(values) })),
  }));
}

/** The value of the faint colour and its name: the mean of the first baseline, else 0. */
export function neutralOf({ baselines }: Measure): { name: string; value: number } {
  for (const { name, values } of baselines) {
    const finite = values.filter(Number.isFinite);
    if (finite.length) return { name: Math.max(...finite) > Math.min(...finite) ? `mean of ${name}` : name, value: finite.reduce((sum, value) => sum + value, 0) / finite.length };
  }
  return { name: "zero", value: 0 };
}

/** Heads by the measure, the one that stands out most first; heads without a value last, in their order. */
export function ranking(measure: Measure): number[] {
  const { values, lowest } = measure;
  const key = (value: number) => (value === value ? (lowest ? -value : value) : -Infinity);
  return values.map((_, index) => index).sort((a, b) => {
    const [x, y] = [key(values[a]), key(values[b])];
    return x === y ? a - b : y - x;
  });
}

export function formatMeasure(value: number, step = 0): string {
  if (value !== value) return "not measured";
  const size = Math.abs(value);
  if (size < step) return `< ${Number(step.toPrecision(1))}`;
  if (size === 0) return "0";
  return size < 0.0005 ? value.toExponential(1) : size < 0.1 ? String(Number(value.toPrecision(2))) : size >= 1000 ? value.toFixed(0) : value.toPrecision(3);
}

/** Value, interval, n, baselines and rank of a head, as lines of a card. */
export function describeHead(measure: Measure, index: number, rank: number | null): string[] {
  const { values, low, high, n, baselines, interval } = measure;
  const value = values[index];
  const known = value === value;
  const between = low && high && low[index] === low[index] && low[index] !== high[index] ? ` [${formatMeasure(low[index])}, ${formatMeasure(high[index])}]` : "";
  const counted = values.filter((each) => each === each).length;
  return [
    `${measure.name}: ${formatMeasure(value, measure.step)}${between}${between && interval ? ` ${interval}` : ""}`,
    ...(known ? [[n[index] > 0 ? `n = ${n[index]}` : "", rank === null ? "" : measure.is_p_value ? `one of ${counted} tests` : `rank ${rank + 1} of ${counted}${measure.lowest ? ", lowest first" : ""}`].filter(Boolean).join(" · ")] : []),
    ...baselines.filter((baseline) => baseline.values[index] === baseline.values[index]).map((baseline) => `${baseline.name} ${formatMeasure(baseline.values[index])}`),
  ].filter(Boolean);
}
