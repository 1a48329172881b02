// Dependency arcs over the tokens on screen: their tokens, how they are drawn, and the attention along them.
import type { Palette } from "./palette";
import type { Picture, Unit } from "./compose";
import type { DependencyTree } from "./payload";
import { FONT, type Pen } from "./pen";
import type { Source } from "./source";
import type { State } from "./state";
import { fitText, textWidth } from "./text";

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
      const isShown = !state.relation || !tree.directed || label === state.relation;
      return from && to && isShown ? [{ start: from, end: to, label, level: 1 }] : [];
    });
    return { tree, edges: assignLevels(edges), colour: (palette: Palette) => (tree.directed ? palette.goldArc : palette.predictedArc) };
  });
}

/** The relations of all directed trees, in alphabetical order. */
export function relationsOf(source: Source): string[] {
  const labels = source.run.trees.filter((tree) => tree.directed).flatMap((tree) => tree.arcs.map(({ label }) => label));
  return [...new Set(labels.filter(Boolean))].sort();
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

/** Where arcs are drawn: beyond a list of tokens, `list` pixels wide, whose words begin at `tokens`. */
export interface Gutter {
  tokens: number; // x of the edge of the list at which its words are set
  width: number; // beyond the list
  away: 1 | -1; // from the words towards the right or the left
  list: number;
  top: number;
  step: number;
}

const MAX_LABEL_LENGTH = 14;
const LABEL_FONT = 10;
/** The size of tokens beside the lines, in pixels. */
export const WORD_FONT = 14;
const GAP = 5;

/** The space for arcs beside a list of tokens. */
export function gutterWidth(arcs: Arcs | undefined, narrow: boolean): number {
  if (!arcs) return 0;
  const levels = Math.max(1, ...arcs.edges.map((edge) => edge.level));
  const labels = arcs.edges.some((edge) => edge.label) ? 34 : 0;
  return narrow ? 30 : Math.min(130, 16 + 10 * levels) + labels;
}

/** Draw the edges next to a list of tokens; those of the selected token stand out.
 *
 * Each arc ends at its words. The relation stands between a dependent and the end of its arc, so that it crosses none.
 */
export function drawArcs(pen: Pen, arcs: Arcs, units: Unit[], positions: number[], gutter: Gutter, palette: Palette, selection: number): void {
  const { tokens, width, list, away, top, step } = gutter;
  const colour = arcs.colour(palette);
  const deepest = Math.max(1, ...arcs.edges.map((edge) => edge.level));
  const limit = list + width - 10; // the farthest from the words' edge
  const shownOf = (members: number[]) => members.map((unit) => positions.indexOf(unit)).filter((position) => position >= 0);
  const relation = new Map<number, string>();
  for (const { start, label } of arcs.edges) if (arcs.tree.directed && label) relation.set(start[0], [...label].slice(0, MAX_LABEL_LENGTH).join(""));
  /** The distance from the edge of the list at which an arc meets a word: beyond its text, and its relation. */
  const reachOf = (unit: number) => {
    const { text, source } = units[unit];
    const word = Math.min(list - 60, textWidth(fitText(source ? `${text} ${source}` : text, list - 66, WORD_FONT, FONT), WORD_FONT, FONT) + 6);
    const label = relation.get(unit);
    return word + GAP + (label ? textWidth(label, LABEL_FONT, FONT) + GAP : 0);
  };
  const middle = (unit: number) => top + (positions.indexOf(unit) + 0.5) * step;
  const farthest = Math.max(...arcs.edges.flatMap(({ start, end }) => [...start, ...end]).filter((unit) => positions.includes(unit)).map(reachOf), 0);
  for (const { start, end, label, level } of arcs.edges) {
    const [from, to] = [shownOf(start), shownOf(end)];
    if (!from.length || !to.length) continue;
    const [first, second] = [positions[from[0]], positions[to[0]]];
    const isSelected = selection >= 0 && (start.includes(selection) || end.includes(selection));
    const strength = selection < 0 ? 0.85 : isSelected ? 1 : 0.16;
    const [x1, x2] = [tokens + away * reachOf(first), tokens + away * reachOf(second)];
    const [y1, y2] = [middle(first), middle(second)];
    const peak = Math.min(limit, farthest + 8 + Math.max(8, limit - farthest - 8) * (level / deepest));
    // A Bézier curve reaches three quarters of the way to its control points.
    const bend = (x: number) => x + (tokens + away * peak - x) / 0.75;
    pen.curve([x1, y1, bend(x1), y1, bend(x2), y2, x2, y2], colour, strength, isSelected ? 2 : 1.3, !arcs.tree.directed);
    if (arcs.tree.directed) pen.lines([x2, y2, x2 + away * 6, y2 - 3.5, x2, y2, x2 + away * 6, y2 + 3.5], colour, strength, 1.3);
    if (relation.has(first) && label && strength > 0.5) pen.text(x1 - away * GAP * 0.6, y1, relation.get(first)!, colour, LABEL_FONT, away < 0 ? "start" : "end", false, { title: label });
  }
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

/** The mean weight along the edges, before any filter: from a word the mean over its tokens, to a word their sum. */
export function weightAlongArcs(arcs: Arcs, picture: Picture): ArcWeight | null {
  const { rows, columns, series } = picture;
  const shown = arcs.edges.filter(({ start, end }) => [...start, ...end].every((unit) => rows.includes(unit) && columns.includes(unit)));
  if (!shown.length || !series.length) return null;
  const between = (from: number[], to: number[]) => {
    let sum = 0;
    for (const { all } of series) for (const a of from) for (const b of to) sum += all[rows.indexOf(a) * columns.length + columns.indexOf(b)];
    return sum / from.length / series.length;
  };
  const mean = (value: (edge: Edge) => number) => shown.reduce((sum, edge) => sum + value(edge), 0) / shown.length;
  return {
    forward: mean(({ start, end }) => between(start, end)),
    back: mean(({ start, end }) => between(end, start)),
    edges: shown.length,
  };
}
