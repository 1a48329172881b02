// Dependency arcs over the tokens on screen: which tokens they join, how they are drawn, how much attention follows them.
import type { Palette } from "./colours";
import type { Picture } from "./compose";
import type { Tree } from "./payload";
import type { Pen } from "./pen";
import type { Source } from "./source";
import type { State } from "./state";

/** An edge between the places of tokens; a word of several pieces has several. */
export interface Edge {
  start: number[]; // units
  end: number[];
  label: string;
  level: number; // how many edges lie under it
}

export interface Arcs {
  tree: Tree;
  edges: Edge[];
  colour: (palette: Palette) => string;
}

/** The trees that are chosen, over the units on screen. */
export function arcsOf(state: State, source: Source, picture: Picture): Arcs[] {
  const { trees, pieces } = source.run;
  const unitsOfWord = new Map<number, number[]>();
  picture.units.forEach((unit, index) => {
    const word = pieces[unit.pieces[0]].word;
    if (word >= 0) unitsOfWord.set(word, [...(unitsOfWord.get(word) ?? []), index]);
  });
  const wanted = trees.filter((tree) => state.tree === "all" || state.tree === (tree.directed ? "gold" : "found"));
  return wanted.map((tree) => {
    const edges = tree.arcs.flatMap(({ start, end, label }) => {
      const [from, to] = [unitsOfWord.get(start), unitsOfWord.get(end)];
      return from && to ? [{ start: from, end: to, label, level: 1 }] : [];
    });
    return { tree, edges: levelled(edges), colour: (palette: Palette) => palette.trees[tree.directed ? 0 : 1] };
  });
}

/** Shorter edges first: each lies one level above the highest of those it spans. */
function levelled(edges: Edge[]): Edge[] {
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

const LONGEST = 16; // letters of a label
const LINE = 10; // pixels from one label to the next
const LABELS = 46; // pixels kept for labels, where there is room for them

export function gutterWidth(arcs: Arcs, narrow: boolean): number {
  const levels = Math.max(1, ...arcs.edges.map((edge) => edge.level));
  if (narrow) return 40;
  return Math.min(150, 16 + 11 * levels) + (arcs.edges.some((edge) => edge.label) ? LABELS : 0);
}

/** The edges beside a list of tokens, bent away from it; those of the chosen token stand out. */
export function drawArcs(pen: Pen, arcs: Arcs, places: number[], gutter: Gutter, palette: Palette, chosen: number): void {
  const { tokens, width, away, top, step } = gutter;
  const colour = arcs.colour(palette);
  const labelled = width > 60 && arcs.edges.some((edge) => edge.label);
  const deepest = Math.max(1, ...arcs.edges.map((edge) => edge.level));
  const room = width - 8 - (labelled ? LABELS : 0);
  const middle = (units: number[]) => {
    const shown = units.map((unit) => places.indexOf(unit)).filter((place) => place >= 0);
    return shown.length ? top + (shown.reduce((sum, place) => sum + place, 0) / shown.length + 0.5) * step : null;
  };
  const labels: [number, number, string][] = [];
  for (const { start, end, label, level } of arcs.edges) {
    const [from, to] = [middle(start), middle(end)];
    if (from === null || to === null) continue;
    const mine = chosen >= 0 && (start.includes(chosen) || end.includes(chosen));
    const strength = chosen < 0 ? 0.8 : mine ? 1 : 0.18;
    const peak = tokens + away * (6 + (room - 6) * (level / deepest));
    // A curve reaches three quarters of the way to the points that bend it.
    const bend = tokens + (away * Math.abs(peak - tokens)) / 0.75;
    pen.curve([tokens, from, bend, from, bend, to, tokens, to], colour, strength, mine ? 2 : 1.3, !arcs.tree.directed);
    if (arcs.tree.directed) pen.lines([tokens, to, tokens + away * 6, to - 3.5, tokens, to, tokens + away * 6, to + 3.5], colour, strength, 1.3);
    if (labelled && label && (mine || chosen < 0)) labels.push([peak + away * 3, (from + to) / 2, [...label].slice(0, LONGEST).join("")]);
  }
  for (const [x, y, label] of apart(labels, away)) {
    const wide = wideOf(label);
    pen.rect(away < 0 ? x - wide : x, y - 5.5, wide, 11, palette.paper);
    pen.text(x, y, label, colour, 10, away < 0 ? "end" : "start");
  }
}

function wideOf(label: string): number {
  return 5.4 * label.length + 2;
}

/** Labels from above to below, each moved down as little as keeps it off those before it. */
function apart(labels: [number, number, string][], away: 1 | -1): [number, number, string][] {
  const placed: [number, number, string][] = [];
  for (const [x, wanted, label] of [...labels].sort((a, b) => a[1] - b[1])) {
    const span = (at: number, text: string) => (away < 0 ? [at - wideOf(text), at] : [at, at + wideOf(text)]);
    const [left, right] = span(x, label);
    let y = wanted;
    for (const [otherX, otherY, other] of placed) {
      const [from, to] = span(otherX, other);
      if (from < right && to > left && Math.abs(otherY - y) < LINE) y = otherY + LINE;
    }
    placed.push([x, y, label]);
  }
  return placed;
}

/** The edges of a token in words, a line a tree. */
export function edgesOfUnit(arcs: Arcs[], unit: number, picture: Picture): string[] {
  const named = (units: number[]) => units.map((one) => picture.units[one].text.replace(/^##/, "")).join("");
  return arcs.flatMap(({ tree, edges }) => {
    const told = edges.flatMap(({ start, end, label }) => {
      const relation = label ? ` (${label})` : "";
      if (start.includes(unit)) return [`${tree.directed ? "head " : ""}${named(end)}${relation}`];
      return end.includes(unit) ? [`${tree.directed ? "dependent " : ""}${named(start)}${relation}`] : [];
    });
    return told.length ? [`${tree.name}: ${told.join(", ")}`] : [];
  });
}

/** Cells of the map that an edge stands for, as "row,column" of places; both ways where it has no direction. */
export function cellsOf(arcs: Arcs, picture: Picture): Set<string> {
  const cells = new Set<string>();
  const add = (from: number[], to: number[]) => {
    for (const one of from) for (const other of to) cells.add(`${picture.rows.indexOf(one)},${picture.columns.indexOf(other)}`);
  };
  for (const { start, end } of arcs.edges) {
    add(start, end);
    if (!arcs.tree.directed) add(end, start);
  }
  return cells;
}

export interface Followed {
  forward: number; // mean weight from the start of an edge to its end
  back: number;
  edges: number;
}

/** How much weight goes along the edges: from a word the mean over its pieces, to a word their sum. */
export function followed(arcs: Arcs, picture: Picture): Followed | null {
  const { rows, columns, series } = picture;
  const seen = arcs.edges.filter(({ start, end }) => [...start, ...end].every((unit) => rows.includes(unit) && columns.includes(unit)));
  if (!seen.length || !series.length) return null;
  const between = (from: number[], to: number[]) => {
    let sum = 0;
    for (const { weights } of series) for (const a of from) for (const b of to) sum += weights[rows.indexOf(a) * columns.length + columns.indexOf(b)] || 0;
    return sum / from.length / series.length;
  };
  const mean = (value: (edge: Edge) => number) => seen.reduce((sum, edge) => sum + value(edge), 0) / seen.length;
  return {
    forward: mean(({ start, end }) => between(start, end)),
    back: mean(({ start, end }) => between(end, start)),
    edges: seen.length,
  };
}
