// The lines of the head view: those of the tokens on screen, and only the strongest if there are too many.
// Lines are opaque tints of their head's colour, the strongest on top: colours of heads never mix.
import { headColour, mix } from "../colours";
import type { Palette } from "../palette";
import type { Picture } from "../compose";
import type { TokenSelection } from "../context";
import type { Pen } from "../pen";

const MAX_LINES = 1_500;
const STRENGTHS = 20;
const BINS = 1024;
const WIDTH = { least: 1.1, most: 6 };

export interface Geometry {
  left: number; // where lines start and end
  right: number;
  top: number;
  step: number; // from one token to the next
}

/** Positions on screen, without the last. */
export interface Span {
  first: number;
  last: number;
}

export interface LineCutoff {
  threshold: number; // weaker lines are not drawn
  drawn: number;
  all: number;
  fraction: number; // of the weight of all lines
}

type Visit = (weight: number, row: number, column: number) => void;

/** Visit every line that starts or ends on screen, or those of the selected token. */
function eachLine(picture: Picture, weights: Float32Array, selection: TokenSelection | null, span: Span, visit: Visit): void {
  const [rows, columns] = [picture.rows.length, picture.columns.length];
  const visitCells = (firstRow: number, endRow: number, firstColumn: number, endColumn: number) => {
    for (let row = firstRow; row < endRow; row++) {
      for (let column = firstColumn; column < endColumn; column++) visit(weights[row * columns + column], row, column);
    }
  };
  if (selection?.side === "from") return visitCells(selection.position, selection.position + 1, 0, columns);
  if (selection) return visitCells(0, rows, selection.position, selection.position + 1);
  const [first, end] = [Math.min(rows, span.first), Math.min(rows, span.last)];
  visitCells(first, end, 0, columns);
  visitCells(0, first, Math.min(columns, span.first), Math.min(columns, span.last));
  visitCells(end, rows, Math.min(columns, span.first), Math.min(columns, span.last));
  return undefined;
}

/** The weight below which lines are not drawn, so that there are at most MAX_LINES. */
export function lineCutoff(picture: Picture, selection: TokenSelection | null, span: Span, limit = MAX_LINES): LineCutoff {
  const max = largestLine(picture, null);
  const [counts, masses] = [new Float64Array(BINS + 1), new Float64Array(BINS + 1)];
  let [all, mass] = [0, 0];
  for (const { weights } of picture.series) {
    eachLine(picture, weights, selection, span, (weight) => {
      const size = Math.abs(weight);
      if (!(size > 0)) return;
      const bin = Math.trunc((size / max) * BINS);
      counts[bin]++;
      masses[bin] += size;
      mass += size;
      all++;
    });
  }
  if (all <= limit) return { threshold: 0, drawn: all, all, fraction: 1 };
  let [drawn, drawnMass, bin] = [0, 0, BINS];
  while (bin >= 0 && (drawn === 0 || drawn + counts[bin] <= limit)) {
    drawn += counts[bin];
    drawnMass += masses[bin];
    bin--;
  }
  return { threshold: ((bin + 1) / BINS) * max, drawn, all, fraction: drawnMass / mass };
}

/** The weight with the strongest line; of faded lines only if there are no others. */
export function largestLine(picture: Picture, faded: boolean[] | null): number {
  let [max, ordinary] = [0, 0];
  const width = picture.columns.length;
  for (const { weights } of picture.series) {
    for (let row = 0; row < picture.rows.length; row++) {
      const isFaded = faded?.[picture.rows[row]];
      for (let column = 0; column < width; column++) {
        const size = Math.abs(weights[row * width + column]);
        if (size > max) max = size;
        if (size > ordinary && !isFaded && !faded?.[picture.columns[column]]) ordinary = size;
      }
    }
  }
  return faded && ordinary > 0 ? ordinary : max;
}

/** Whether the lines of each unit are faded: those of special tokens. */
export function fadedUnits(picture: Picture, special: string): boolean[] | null {
  return special === "fade" ? picture.units.map((unit) => unit.special) : null;
}

/** How a line of a strength between 0 and 1 looks; the widest is a quarter of the distance between tokens. */
export function lineStyle(strength: number, colour: string, palette: Palette, step: number): { colour: string; width: number } {
  const most = Math.min(WIDTH.most, Math.max(2.2, 0.27 * step));
  const least = Math.min(WIDTH.least, most / 2);
  return { colour: mix(palette.background, colour, 0.22 + 0.78 * strength), width: least + (most - least) * strength };
}

function fadedStyle(strength: number, palette: Palette): { colour: string; width: number } {
  return { colour: mix(palette.background, palette.muted, 0.16 + 0.3 * strength), width: 1 + 0.9 * strength };
}

export interface LineOptions {
  palette: Palette;
  selection: TokenSelection | null;
  span: Span;
  threshold: number;
  faded: boolean[] | null;
}

export function drawLines(pen: Pen, picture: Picture, geometry: Geometry, { palette, selection, span, threshold, faded }: LineOptions): void {
  const { left, right, top, step } = geometry;
  const max = largestLine(picture, faded);
  const middle = (position: number) => top + (position + 0.5) * step;
  const groups = new Map<string, { points: number[]; colour: string; width: number; strength: number; faded: boolean }>();
  picture.series.forEach((series, index) => {
    eachLine(picture, series.weights, selection, span, (weight, row, column) => {
      const size = Math.abs(weight);
      if (!(size > 0) || size < threshold) return;
      const isFaded = faded !== null && (faded[picture.rows[row]] || faded[picture.columns[column]]);
      const bin = Math.min(STRENGTHS - 1, Math.trunc((size / max) * STRENGTHS));
      const key = `${isFaded ? "faded" : index} ${weight < 0} ${bin}`;
      let group = groups.get(key);
      if (!group) {
        const strength = (bin + 0.5) / STRENGTHS;
        const colour = picture.signed ? (weight < 0 ? palette.below[3] : palette.above[3]) : headColour(palette, series.colour);
        group = { points: [], strength, faded: isFaded, ...(isFaded ? fadedStyle(strength, palette) : lineStyle(strength, colour, palette, step)) };
        groups.set(key, group);
      }
      group.points.push(left, middle(row), right, middle(column));
    });
  });
  const ordered = [...groups.values()].sort((a, b) => Number(b.faded) - Number(a.faded) || a.strength - b.strength);
  for (const { points, colour, width } of ordered) pen.curves(points, colour, width);
}
