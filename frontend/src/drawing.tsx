// The chosen view, the layers it needs, and the surroundings of a drawing: its width and whether it is dark.
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { layersNeeded } from "./compose";
import type { ViewProps } from "./context";
import type { Source } from "./source";
import type { State } from "./state";
import { ShownWeight } from "./views/Details";
import { DifferenceView } from "./views/DifferenceView";
import { HeadView } from "./views/HeadView";
import { MatrixView } from "./views/MatrixView";
import { ModelView } from "./views/ModelView";
import { NeuronView } from "./views/NeuronView";

export function View(props: ViewProps) {
  if (!props.picture.rows.length || !props.picture.columns.length) return <p class="note">With these settings no token is left to show.</p>;
  switch (props.state.view) {
    case "head": return <><ShownWeight {...props} /><HeadView {...props} /></>;
    case "model": return <ModelView {...props} />;
    case "matrix": return <><ShownWeight {...props} /><MatrixView {...props} /></>;
    case "neuron": return <NeuronView {...props} />;
    case "difference": return <DifferenceView {...props} />;
  }
}

/** The part of the state that determines the weights on screen. */
export function pictureKey(state: State): string {
  const { view, run, quantity, layer, heads, across, fusion, units, special, part, keep, mass, threshold, top } = state;
  return JSON.stringify([view, run, quantity, layer, heads, across, fusion, units, special, part, keep, mass, threshold, top]);
}

export async function loadLayers(state: State, sources: Source[]): Promise<void> {
  const source = sources[state.run];
  for (const each of state.view === "difference" ? sources : [source]) {
    const layers = layersNeeded(state, each).filter((layer) => layer < each.layers);
    await each.quantities[Math.min(state.quantity, each.quantities.length - 1)].load(layers);
    if (state.fusion === "norm" || state.across === "norm") await each.valueNorms?.load(layers);
  }
  if (state.view === "neuron") {
    await source.query!.load([state.layer]);
    await source.key!.load([state.layer]);
  }
}

export function useWidth(): [RefObject<HTMLElement | null>, number] {
  const element = useRef<HTMLElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry.contentRect.width)));
    observer.observe(element.current!);
    setWidth(Math.floor(element.current!.getBoundingClientRect().width));
    return () => observer.disconnect();
  }, []);
  return [element, width];
}

export function useDark(theme: State["theme"]): boolean {
  const query = useMemo(() => window.matchMedia("(prefers-color-scheme: dark)"), []);
  const [dark, setDark] = useState(query.matches);
  useEffect(() => {
    const onChange = () => setDark(query.matches);
    query.addEventListener("change", onChange);
    return () => query.removeEventListener("change", onChange);
  }, []);
  return theme === "auto" ? dark : theme === "dark";
}
