// Dependency arcs over the tokens on screen: their tokens, how they are drawn, and the attention along them.
import type { Palette } from "./palette";
import type { Picture } from "./compose";
import type { DependencyTree } from "./payload";
import type { Pen } from "./pen";
import type { Source } from "./source";
import type { State } from "./state";

/** An edge between units; a word of several tokens has several units. */
export interface Edge {
  start: number[]; // units
  end: number[];
  label: string;
  level: number; // how many edges lie under it
}

export interface Arcs {
  tree: DependencyTree;
  edges: Edge[];
  colour: (palette: Palette) => string;
}

/** The selected trees over the units on screen. */
export function arcsOf(state: State, source: Source, picture: Picture): Arcs[] {
  const { trees, tokens } = source.run;
  const unitsOfWord = new Map<number, number[]>();
  picture.units.forEach((unit, index) => {
    const word = tokens[unit.tokens[0]].word_index;
    if (word >= 0) unitsOfWord.set(word, [...(unitsOfWord.get(word) ?? []), index]);
  });
  const selected = trees.filter((tree) => state.tree === "all" || state.tree === (tree.directed ? "gold" : "predicted"));
  return selected.map((tree) => {
    const edges = tree.arcs.flatMap(({ start, end, label }) => {
      const [from, to] = [unitsOfWord.get(start), unitsOfWord.get(end)];
      return from && to ? [{ start: from, end: to, label, level: 1 }] : [];
    });
    return { tree, edges: assignLevels(edges), colour: (palette: Palette) => (tree.directed ? palette.goldArc : palette.predictedArc) };
  });
}

/** Levels of nested edges: each edge lies one level above the highest edge it spans. */
function assignLevels(edges: Edge[]): Edge[] {
  const ends = ({ start, end }: Edge) => [Math.min(start[0], end[0]), Math.max(start[0], end[0])];
  const length = (edge: Edge) => ends(edge)[1] - ends(edge)[0];
  const sorted = [...edges].sort((a, b) => length(a) - length(b));
  sorted.forEach((edge, index) => {
    const [first, last] = ends(edge);
    for (const under of sorted.slice(0, index)) {
      const [a, b] = ends(under);
      if (a < last && b > first) edge.level = Math.max(edge.level, under.level + 1);
    }
  });
  return sorted;
}

export interface Gutter {
  tokens: number; // x of the edge of the tokens
  width: number;
  away: 1 | -1; // towards the right or the left
  top: number;
  step: number;
}

const MAX_LABEL_LENGTH = 16;
const LABEL_HEIGHT = 10;
const LABEL_WIDTH = 46; // pixels reserved for labels, if there is space

export function gutterWidth(arcs: Arcs, narrow: boolean): number {
  const levels = Math.max(1, ...arcs.edges.map((edge) => edge.level));
  if (narrow) return 40;
  return Math.min(150, 16 + 11 * levels) + (arcs.edges.some((edge) => edge.label) ? LABEL_WIDTH : 0);
}

/** Draw the edges next to a list of tokens; those of the selected token stand out. */
export function drawArcs(pen: Pen, arcs: Arcs, positions: number[], gutter: Gutter, palette: Palette, selection: number): void {
  const { tokens, width, away, top, step } = gutter;
  const colour = arcs.colour(palette);
  const labelled = width > 60 && arcs.edges.some((edge) => edge.label);
  const deepest = Math.max(1, ...arcs.edges.map((edge) => edge.level));
  const space = width - 8 - (labelled ? LABEL_WIDTH : 0);
  const middle = (units: number[]) => {
    const shown = units.map((unit) => positions.indexOf(unit)).filter((position) => position >= 0);
    return shown.length ? top + (shown.reduce((sum, position) => sum + position, 0) / shown.length + 0.5) * step : null;
  };
  const labels: [number, number, string][] = [];
  for (const { start, end, label, level } of arcs.edges) {
    const [from, to] = [middle(start), middle(end)];
    if (from === null || to === null) continue;
    const isSelected = selection >= 0 && (start.includes(selection) || end.includes(selection));
    const strength = selection < 0 ? 0.8 : isSelected ? 1 : 0.18;
    const peak = tokens + away * (6 + (space - 6) * (level / deepest));
    // A Bézier curve reaches three quarters of the way to its control points.
    const bend = tokens + (away * Math.abs(peak - tokens)) / 0.75;
    pen.curve([tokens, from, bend, from, bend, to, tokens, to], colour, strength, isSelected ? 2 : 1.3, !arcs.tree.directed);
    if (arcs.tree.directed) pen.lines([tokens, to, tokens + away * 6, to - 3.5, tokens, to, tokens + away * 6, to + 3.5], colour, strength, 1.3);
    if (labelled && label && (isSelected || selection < 0)) labels.push([peak + away * 3, (from + to) / 2, [...label].slice(0, MAX_LABEL_LENGTH).join("")]);
  }
  for (const [x, y, label] of separateLabels(labels, away)) {
    const wide = labelWidth(label);
    pen.rect(away < 0 ? x - wide : x, y - 5.5, wide, 11, palette.background);
    pen.text(x, y, label, colour, 10, away < 0 ? "end" : "start");
  }
}

function labelWidth(label: string): number {
  return 5.4 * label.length + 2;
}

/** The labels from top to bottom, moved down just enough not to overlap. */
function separateLabels(labels: [number, number, string][], away: 1 | -1): [number, number, string][] {
  const placed: [number, number, string][] = [];
  for (const [x, preferred, label] of [...labels].sort((a, b) => a[1] - b[1])) {
    const span = (at: number, text: string) => (away < 0 ? [at - labelWidth(text), at] : [at, at + labelWidth(text)]);
    const [left, right] = span(x, label);
    let y = preferred;
    for (const [otherX, otherY, other] of placed) {
      const [from, to] = span(otherX, other);
      if (from < right && to > left && Math.abs(otherY - y) < LABEL_HEIGHT) y = otherY + LABEL_HEIGHT;
    }
    placed.push([x, y, label]);
  }
  return placed;
}

/** The edges of a token in words, one line per tree. */
export function edgesOfUnit(arcs: Arcs[], unit: number, picture: Picture): string[] {
  const named = (units: number[]) => units.map((index) => picture.units[index].text.replace(/^##/, "")).join("");
  return arcs.flatMap(({ tree, edges }) => {
    const described = edges.flatMap(({ start, end, label }) => {
      const relation = label ? ` (${label})` : "";
      if (start.includes(unit)) return [`${tree.directed ? "governor " : ""}${named(end)}${relation}`];
      return end.includes(unit) ? [`${tree.directed ? "dependent " : ""}${named(start)}${relation}`] : [];
    });
    return described.length ? [`${tree.name}: ${described.join(", ")}`] : [];
  });
}

/** The cells of an edge, as "row,column"; in both directions if the tree is undirected. */
export function cellsOf(arcs: Arcs, picture: Picture): Set<string> {
  const cells = new Set<string>();
  const add = (from: number[], to: number[]) => {
    for (const row of from) for (const column of to) cells.add(`${picture.rows.indexOf(row)},${picture.columns.indexOf(column)}`);
  };
  for (const { start, end } of arcs.edges) {
    add(start, end);
    if (!arcs.tree.directed) add(end, start);
  }
  return cells;
}

export interface ArcWeight {
  forward: number; // from the start of an edge to its end, in a directed tree from dependent to governor
  back: number;
  edges: number;
}

/** The mean weight along the edges: from a word the mean over its tokens, to a word their sum. */
export function weightAlongArcs(arcs: Arcs, picture: Picture): ArcWeight | null {
  const { rows, columns, series } = picture;
  const shown = arcs.edges.filter(({ start, end }) => [...start, ...end].every((unit) => rows.includes(unit) && columns.includes(unit)));
  if (!shown.length || !series.length) return null;
  const between = (from: number[], to: number[]) => {
    let sum = 0;
    for (const { weights } of series) for (const a of from) for (const b of to) sum += weights[rows.indexOf(a) * columns.length + columns.indexOf(b)] || 0;
    return sum / from.length / series.length;
  };
  const mean = (value: (edge: Edge) => number) => shown.reduce((sum, edge) => sum + value(edge), 0) / shown.length;
  return {
    forward: mean(({ start, end }) => between(start, end)),
    back: mean(({ start, end }) => between(end, start)),
    edges: shown.length,
  };
}
