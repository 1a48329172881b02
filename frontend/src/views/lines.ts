// The lines of the head view: those of the tokens on screen, and only the strongest if there are too many.
import { headColour } from "../colours";
import type { Palette } from "../palette";
import type { Picture } from "../compose";
import type { TokenSelection } from "../context";
import type { Pen } from "../pen";

const MAX_LINES = 6_000;
const MAX_WIDE_LINES = 3_000;
const STRENGTHS = 24;
const BINS = 1024;

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
export function lineCutoff(picture: Picture, selection: TokenSelection | null, span: Span): LineCutoff {
  const max = largestLine(picture, selection, span);
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
  if (all <= MAX_LINES) return { threshold: 0, drawn: all, all, fraction: 1 };
  let [drawn, drawnMass, bin] = [0, 0, BINS];
  while (bin >= 0 && drawn + counts[bin] <= MAX_LINES) {
    drawn += counts[bin];
    drawnMass += masses[bin];
    bin--;
  }
  return { threshold: ((bin + 1) / BINS) * max, drawn, all, fraction: drawnMass / mass };
}

function largestLine(picture: Picture, selection: TokenSelection | null, span: Span): number {
  let max = 0;
  for (const { weights } of picture.series) {
    eachLine(picture, weights, selection, span, (weight) => {
      if (Math.abs(weight) > max) max = Math.abs(weight);
    });
  }
  return max;
}

export function drawLines(pen: Pen, picture: Picture, geometry: Geometry, palette: Palette, selection: TokenSelection | null, span: Span, threshold: number): void {
  const { left, right, top, step } = geometry;
  const max = largestLine(picture, selection, span);
  const middle = (position: number) => top + (position + 0.5) * step;
  const all: { points: number[]; colour: string; strength: number }[] = [];
  for (const series of picture.series) {
    const groups: number[][] = Array.from({ length: 2 * STRENGTHS }, () => []);
    eachLine(picture, series.weights, selection, span, (weight, row, column) => {
      const size = Math.abs(weight);
      if (!(size > 0) || size < threshold) return;
      const group = Math.min(STRENGTHS - 1, Math.trunc((size / max) * STRENGTHS)) + (weight < 0 ? STRENGTHS : 0);
      groups[group].push(left, middle(row), right, middle(column));
    });
    groups.forEach((points, index) => {
      if (!points.length) return;
      const strength = ((index % STRENGTHS) + 0.5) / STRENGTHS;
      const colour = picture.signed ? (index < STRENGTHS ? palette.above[3] : palette.below[3]) : headColour(palette, series.colour);
      all.push({ points, colour, strength });
    });
  }
  // Lines wider than a pixel take many times longer to draw, and many of them hide one another.
  const many = all.reduce((sum, { points }) => sum + points.length / 4, 0) > MAX_WIDE_LINES;
  // Faint lines add up where they cross: opacity falls faster than weight.
  for (const { points, colour, strength } of all) pen.lines(points, colour, Math.max(0.02, Math.min(1, strength ** 1.25)), many ? 1 : 0.7 + 2.3 * strength);
}
