// Two runs compared: whether their tokens correspond, and how much the attention of each head differs.
import { useEffect, useMemo, useState } from "preact/hooks";
import { layoutOf, type Picture, shapeWeights, unitsOf } from "../compose";
import type { Source } from "../source";
import type { State } from "../state";

const PAUSE = 40; // milliseconds of work after which the page may draw

/** Whether the tokens (or words) of both runs correspond by position. */
export function haveSameLayout(first: Source, second: Source, kind: State["units"]): boolean {
  if (first.layers !== second.layers || first.heads !== second.heads) return false;
  const [a, b] = [first, second].map((source) => unitsOf(source, kind));
  const word = (source: Source, token: number) => source.run.tokens[token].word_index;
  return a.length === b.length && a.every((unit, index) => {
    const other = b[index];
    return unit.special === other.special && unit.segment === other.segment && word(first, unit.tokens[0]) === word(second, other.tokens[0]);
  });
}

/** One text, or both if they differ. */
export function joinTexts(first: string, second: string): string {
  return first === second ? first : `${first} / ${second}`;
}

export function difference([a, b]: Picture[]): Float32Array {
  const [x, y] = [a.series[0].weights, b.series[0].weights];
  return x.map((value, i) => (y[i] || 0) - (value || 0));
}

export interface Distances {
  values: number[]; // layer after layer; NaN while not computed
  complete: boolean;
}

/** For each head the mean over rows of the total variation distance between the rows of both runs, layer by layer. */
export function useDistances(sources: Source[], state: State, comparable: boolean): Distances {
  const [, redraw] = useState(0);
  const filters = [state.quantity, state.units, state.special, state.part, state.keep, state.mass, state.threshold, state.top];
  const distances = useMemo<Distances>(() => ({ values: new Array<number>(sources[0].layers * sources[0].heads).fill(NaN), complete: false }), [sources, comparable, ...filters]);
  useEffect(() => {
    let outdated = false;
    const compute = async () => {
      const [first] = sources;
      const layouts = sources.map((source) => layoutOf(state, source));
      const weights = sources.map((source) => source.quantities[Math.min(state.quantity, source.quantities.length - 1)]);
      let started = performance.now();
      for (let layer = 0; layer < first.layers; layer++) {
        for (const each of weights) await each.load([layer]);
        for (let head = 0; head < first.heads; head++) {
          if (performance.now() - started > PAUSE) {
            redraw((count) => count + 1);
            await new Promise((resolve) => setTimeout(resolve));
            started = performance.now();
          }
          if (outdated) return;
          const [x, y] = weights.map((each, index) => shapeWeights(each.head(layer, head), layouts[index], state));
          distances.values[layer * first.heads + head] = distance(x, y, layouts[0].rows.length);
        }
      }
      distances.complete = true;
      redraw((count) => count + 1);
    };
    if (comparable && !distances.complete) void compute();
    return () => {
      outdated = true;
    };
  }, [distances]);
  return distances;
}

function distance(x: Float32Array, y: Float32Array, rows: number): number {
  let sum = 0;
  for (let i = 0; i < x.length; i++) sum += Math.abs((y[i] || 0) - (x[i] || 0));
  return rows ? sum / 2 / rows : 0;
}
