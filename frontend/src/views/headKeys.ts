// Keys that move between heads in a grid: arrows, h, j, k, l, Home and End; and the names of the heads there.
import type { Source } from "../source";

/** The place that a key leads to in a grid of so many columns; null if it leads nowhere. */
export function nextPlace(event: KeyboardEvent, place: number, columns: number, count: number): number | null {
  if (event.ctrlKey || event.metaKey || event.altKey) return null;
  const by = { ArrowRight: 1, l: 1, ArrowLeft: -1, h: -1, ArrowDown: columns, j: columns, ArrowUp: -columns, k: -columns }[event.key];
  const next = event.key === "Home" ? 0 : event.key === "End" ? count - 1 : by === undefined ? null : place + by;
  return next === null || next < 0 || next >= count ? null : next;
}

/** The name of the head at an index, layer after layer. */
export function headName(index: number, source: Source): string {
  return source.nameOf(Math.trunc(index / source.heads), index % source.heads);
}
