// What every view is given.
import type { Palette } from "./colours";
import type { Picture } from "./compose";
import type { Figure } from "./figure";
import type { Payload } from "./payload";
import type { Source } from "./source";
import type { State, Update } from "./state";
import type { Arcs } from "./trees";

/** A token under the pointer or chosen: its place among the rows (from) or the columns (to). */
export interface Chosen {
  side: "from" | "to";
  place: number;
}

export interface ViewProps {
  payload: Payload;
  sources: Source[];
  source: Source;
  state: State;
  update: Update;
  picture: Picture;
  arcs: Arcs[];
  palette: Palette;
  width: number;
  chosen: Chosen | null;
  hover: (chosen: Chosen | null) => void;
  setFigure: (figure: Figure) => void;
}

/** The place of the pinned token on its side, if it is on screen. */
export function pinned(state: State, picture: Picture): Chosen | null {
  if (state.token < 0) return null;
  const place = (state.side === "from" ? picture.rows : picture.columns).indexOf(state.token);
  return place < 0 ? null : { side: state.side, place };
}

export function pin(chosen: Chosen, state: State, picture: Picture): Partial<State> {
  const token = (chosen.side === "from" ? picture.rows : picture.columns)[chosen.place];
  const again = state.token === token && state.side === chosen.side;
  return again ? { token: -1 } : { token, side: chosen.side };
}
