// The properties of all views.
import type { Palette } from "./palette";
import type { Picture } from "./compose";
import type { Figure } from "./figure";
import type { Payload } from "./payload";
import type { Source } from "./source";
import type { State, Update } from "./state";
import type { Arcs } from "./trees";

/** A hovered or pinned token: its position among the rows (from) or the columns (to). */
export interface TokenSelection {
  side: "from" | "to";
  position: number;
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
  selection: TokenSelection | null;
  hover: (selection: TokenSelection | null) => void;
  setFigure: (figure: Figure) => void;
}

/** The position of the pinned token on its side, if it is on screen. */
export function pinned(state: State, picture: Picture): TokenSelection | null {
  if (state.token < 0) return null;
  const position = (state.side === "from" ? picture.rows : picture.columns).indexOf(state.token);
  return position < 0 ? null : { side: state.side, position };
}

export function pin(selection: TokenSelection, state: State, picture: Picture): Partial<State> {
  const token = (selection.side === "from" ? picture.rows : picture.columns)[selection.position];
  const isPinned = state.token === token && state.side === selection.side;
  return isPinned ? { token: -1 } : { token, side: selection.side };
}
