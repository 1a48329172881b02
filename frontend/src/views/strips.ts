// The weights of one token in every head of the layer, as strips of cells beside the tokens.
import { headColour, mix } from "../colours";
import type { Picture, Unit } from "../compose";
import type { TokenSelection } from "../context";
import { formatExact } from "../numbers";
import type { Palette } from "../palette";
import type { Source } from "../source";
import type { State } from "../state";

export interface Strips {
  others: Map<number, number[]>; // by position on the other side: the weight in each head
  own: number[]; // the strongest weight of the selected token in each head
  max: number;
}

/** The weights between the selected token and those of the positions given, before any filter. */
export function stripsOf(state: State, source: Source, picture: Picture, selection: TokenSelection, positions: number[]): Strips | null {
  if (state.across !== "one" || source.heads < 2) return null;
  const weights = source.quantities[state.quantity];
  const isFrom = selection.side === "from";
  const units = isFrom ? picture.columns : picture.rows;
  const selected = picture.units[(isFrom ? picture.rows : picture.columns)[selection.position]];
  const between = (head: number, other: Unit) => {
    const [from, to] = isFrom ? [selected, other] : [other, selected];
    let sum = 0;
    for (const row of from.tokens) for (const column of to.tokens) sum += weights.value(state.layer, head, row, column);
    return sum / from.tokens.length;
  };
  const heads = Array.from({ length: source.heads }, (_, head) => head);
  const others = new Map(positions.map((position) => [position, heads.map((head) => between(head, picture.units[units[position]]))]));
  const own = heads.map((head) => units.reduce((max, unit) => Math.max(max, Math.abs(between(head, picture.units[unit]))), 0));
  return { others, own, max: Math.max(...own) };
}

/** The cells as a background: one colour per head, the stronger the weight. */
export function stripBackground(values: number[], max: number, palette: Palette, cell: number): string {
  const stops = values.map((value, head) => {
    const colour = mix(palette.background, headColour(palette, head), max > 0 ? 0.06 + 0.94 * Math.min(1, Math.abs(value) / max) : 0);
    return `${colour} ${head * cell}px ${(head + 1) * cell - 1}px, ${palette.background} ${(head + 1) * cell - 1}px ${(head + 1) * cell}px`;
  });
  return `linear-gradient(90deg, ${stops.join(", ")})`;
}

export function describeStrip(values: number[], source: Source, layer: number, step: number): string {
  return values.map((value, head) => `${source.nameOf(layer, head)}: ${formatExact(value, step)}`).join("\n");
}
