// The lines of the head view: those that touch the tokens in sight, the strongest of them where there are too many.
import { headColour, type Palette } from "../colours";
import type { Picture } from "../compose";
import type { Chosen } from "../context";
import type { Pen } from "../pen";

const MOST_LINES = 6_000;
const MOST_WIDE_LINES = 3_000;
const STRENGTHS = 24;
const BINS = 1024;

export interface Geometry {
  left: number; // where lines start and end
  right: number;
  top: number;
  step: number; // from one token to the next
}

/** The places in sight, the last one not included. */
export interface Span {
  first: number;
  last: number;
}

export interface Faintest {
  cut: number; // nothing weaker is drawn
  drawn: number;
  all: number;
  share: number;
}

type Visit = (weight: number, row: number, column: number) => void;

/** Every line that starts or ends in sight, or that belongs to the chosen token. */
function eachLine(picture: Picture, weights: Float32Array, chosen: Chosen | null, span: Span, visit: Visit): void {
  const [rows, columns] = [picture.rows.length, picture.columns.length];
  const run = (fromRow: number, pastRow: number, fromColumn: number, pastColumn: number) => {
    for (let row = fromRow; row < pastRow; row++) {
      for (let column = fromColumn; column < pastColumn; column++) visit(weights[row * columns + column], row, column);
    }
  };
  if (chosen?.side === "from") return run(chosen.place, chosen.place + 1, 0, columns);
  if (chosen) return run(0, rows, chosen.place, chosen.place + 1);
  const [first, past] = [Math.min(rows, span.first), Math.min(rows, span.last)];
  run(first, past, 0, columns);
  run(0, first, Math.min(columns, span.first), Math.min(columns, span.last));
  run(past, rows, Math.min(columns, span.first), Math.min(columns, span.last));
  return undefined;
}

/** The weight below which nothing is drawn, so that no more than MOST_LINES are. */
export function faintest(picture: Picture, chosen: Chosen | null, span: Span): Faintest {
  const reach = reachOfLines(picture, chosen, span);
  const [counts, masses] = [new Float64Array(BINS + 1), new Float64Array(BINS + 1)];
  let [all, mass] = [0, 0];
  for (const { weights } of picture.series) {
    eachLine(picture, weights, chosen, span, (weight) => {
      const size = Math.abs(weight);
      if (!(size > 0)) return;
      const bin = Math.trunc((size / reach) * BINS);
      counts[bin]++;
      masses[bin] += size;
      mass += size;
      all++;
    });
  }
  if (all <= MOST_LINES) return { cut: 0, drawn: all, all, share: 1 };
  let [drawn, kept, bin] = [0, 0, BINS];
  while (bin >= 0 && drawn + counts[bin] <= MOST_LINES) {
    drawn += counts[bin];
    kept += masses[bin];
    bin--;
  }
  return { cut: ((bin + 1) / BINS) * reach, drawn, all, share: kept / mass };
}

function reachOfLines(picture: Picture, chosen: Chosen | null, span: Span): number {
  let reach = 0;
  for (const { weights } of picture.series) {
    eachLine(picture, weights, chosen, span, (weight) => {
      if (Math.abs(weight) > reach) reach = Math.abs(weight);
    });
  }
  return reach;
}

export function drawLines(pen: Pen, picture: Picture, geometry: Geometry, palette: Palette, chosen: Chosen | null, span: Span, cut: number): void {
  const { left, right, top, step } = geometry;
  const reach = reachOfLines(picture, chosen, span);
  const middle = (place: number) => top + (place + 0.5) * step;
  const all: { points: number[]; colour: string; strength: number }[] = [];
  for (const series of picture.series) {
    const groups: number[][] = Array.from({ length: 2 * STRENGTHS }, () => []);
    eachLine(picture, series.weights, chosen, span, (weight, row, column) => {
      const size = Math.abs(weight);
      if (!(size > 0) || size < cut) return;
      const group = Math.min(STRENGTHS - 1, Math.trunc((size / reach) * STRENGTHS)) + (weight < 0 ? STRENGTHS : 0);
      groups[group].push(left, middle(row), right, middle(column));
    });
    groups.forEach((points, index) => {
      if (!points.length) return;
      const strength = ((index % STRENGTHS) + 0.5) / STRENGTHS;
      const colour = picture.signed ? (index < STRENGTHS ? palette.more[3] : palette.less[3]) : headColour(palette, series.colour);
      all.push({ points, colour, strength });
    });
  }
  // Lines wider than a pixel take many times longer to draw, and hide one another where they are many.
  const many = all.reduce((sum, { points }) => sum + points.length / 4, 0) > MOST_WIDE_LINES;
  // Faint lines cover one another: their strength on paper falls faster than their weight.
  for (const { points, colour, strength } of all) pen.lines(points, colour, Math.max(0.02, Math.min(1, strength ** 1.25)), many ? 1 : 0.7 + 2.3 * strength);
}
