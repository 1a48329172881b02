// Keyboard shortcuts of the whole view; those of lists and grids are with them.
import { useEffect, useRef } from "preact/hooks";
import { available } from "./Controls";
import type { Source } from "./source";
import { type State, type Update, VIEWS } from "./state";

interface Actions {
  state: State;
  sources: Source[];
  update: Update;
  release: () => void;
  tour: () => void;
  help: () => void;
}

/** Letters act if the focus is in the view, or on the page itself if the view is all of it; never in a field. */
export function useShortcuts(root: { current: HTMLElement | null }, ownsPage: boolean, actions: Actions): void {
  const latest = useRef(actions);
  latest.current = actions;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const path = event.composedPath();
      const target = path[0] as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      if (!path.includes(root.current!) && !(ownsPage && target === document.body)) return;
      if (target.closest?.("input, textarea, dialog, select")) return;
      if (act(event.key, latest.current)) event.preventDefault();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [ownsPage]);
}

function act(key: string, { state, sources, update, release, tour, help }: Actions): boolean {
  const source = sources[state.run];
  const head = state.heads[0];
  const layer = state.layer + ({ ",": -1, ".": 1 }[key] ?? 0);
  const next = head + ({ "[": -1, "]": 1 }[key] ?? 0);
  if (key === "?") help();
  else if (key === "t") tour();
  else if (key === "Escape") {
    release();
    update({ token: -1 });
  } else if (key === "a") update({ heads: state.heads.length > 1 ? [head] : Array.from({ length: source.heads }, (_, index) => index) });
  else if (/^[1-5]$/.test(key)) {
    const view = VIEWS[Number(key) - 1];
    if (available(view, source, sources)) update({ view });
  } else if (layer !== state.layer) {
    if (layer >= 0 && layer < source.layers) update({ layer });
  } else if (next !== head) {
    if (next >= 0 && next < source.heads) update({ heads: [next] });
  } else return false;
  return true;
}
