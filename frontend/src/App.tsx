// The whole of the views: holds the state, loads the layers it needs, and shows one view with the numbers beside it.
import type { RefObject } from "preact";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { DARK, headColour, LIGHT, type Palette } from "./colours";
import { compose, layersNeeded, type Picture, weighable } from "./compose";
import { type Chosen, pinned, type ViewProps } from "./context";
import { available, Controls } from "./Controls";
import { Export } from "./Export";
import { type Caption, captioned, type Figure } from "./figure";
import type { Payload } from "./payload";
import { Source } from "./source";
import { defaults, fromHash, type Patch, type State, toHash } from "./state";
import { percent } from "./numbers";
import { arcsOf } from "./trees";
import { Details, Share } from "./views/Details";
import { DifferenceView } from "./views/DifferenceView";
import { HeadView } from "./views/HeadView";
import { MatrixView } from "./views/MatrixView";
import { Enlarged, ModelView } from "./views/ModelView";
import { NeuronView } from "./views/NeuronView";

/** Where the host keeps the state: a page in its address, a notebook in the widget's model. */
export interface Keeper {
  read: () => string;
  write: (hash: string) => void;
  listen: (changed: () => void) => void;
  link: ((hash: string) => string) | null;
}

interface Shown {
  state: State;
  picture: Picture;
}

export function App({ payload, keeper }: { payload: Payload; keeper: Keeper }) {
  const sources = useMemo(() => payload.runs.map((run) => new Source(run)), [payload]);
  const usual = useMemo(() => usualState(payload, sources), [payload]);
  const read = () => valid(fromHash(keeper.read() || payload.state, usual, sources[0]), sources);
  const [state, setState] = useState<State>(read);
  const [shown, setShown] = useState<Shown | null>(null);
  const [hovered, setHovered] = useState<Chosen | null>(null);
  const figure = useRef<Figure | null>(null);
  const [main, width] = useWidth();
  const dark = useDark(state.theme);
  const palette = dark ? DARK : LIGHT;
  const update = useCallback((patch: Patch) => {
    setHovered(null);
    setState((old) => valid({ ...old, ...patch }, sources));
  }, [sources]);

  useEffect(() => keeper.listen(() => setState(read())), []);
  useEffect(() => keeper.write(toHash(state, usual)), [state]);
  useEffect(() => {
    let late = false;
    void loaded(state, sources).then(() => {
      if (late) return;
      setShown({ state, picture: compose(state, sources[state.run]) });
      setTimeout(() => late || void neighbours(state, sources[state.run]), 300);
    });
    return () => {
      late = true;
    };
  }, [picturedBy(state)]);

  // While a layer is being decoded the picture before it stays; what needs no other weights changes at once.
  const current = shown && picturedBy(shown.state) === picturedBy(state) ? state : shown?.state;
  const chosen = shown && current ? hovered ?? pinned(current, shown.picture) : null;
  const setFigure = useCallback((made: Figure) => void (figure.current = made), []);
  const source = sources[(current ?? state).run];
  const arcs = useMemo(() => (shown && current ? arcsOf(current, source, shown.picture) : []), [shown, current?.tree]);
  const props: ViewProps | null = shown && current && width > 0
    ? { payload, sources, source, state: current, update, picture: shown.picture, arcs, palette, width, chosen, hover: setHovered, setFigure }
    : null;
  const exported = shown && (
    <Export figure={() => figure.current && captioned(figure.current, captionOf(payload, shown, source, palette))} picture={shown.picture} paper={palette.paper} name={payload.title} link={keeper.link && (() => keeper.link!(toHash(state, usual)))} />
  );
  return (
    <div class="views" data-theme={dark ? "dark" : "light"} data-ready={props ? current!.view : ""} data-shown={shown ? picturedBy(shown.state) : ""}>
      <h1><bdi>{payload.title}</bdi></h1>
      <p class="about">
        {source.run.name} · {source.layers} layers of {source.heads} heads · {source.pieces} pieces · {source.run.quantities[state.quantity].about}
      </p>
      {payload.notes.map((note) => <p class="note" key={note}>{note}</p>)}
      <Controls state={state} update={update} source={source} sources={sources} palette={palette} exports={exported} />
      <div class={`body ${state.view}`}>
        <main ref={main}>{props && <View {...props} />}</main>
        {props && <Beside {...props} />}
      </div>
    </div>
  );
}

function captionOf(payload: Payload, { state, picture }: Shown, source: Source, palette: Palette): Caption {
  const lines = state.view === "head" && !picture.signed;
  const selected = state.view === "head" || state.view === "matrix" ? ` · selected: ${percent(picture.share)} of the weight` : "";
  const what = source.run.quantities[state.quantity].name;
  const heads = state.view === "model" || state.view === "difference" ? "" : ` · ${picture.series.length === 1 ? picture.series[0].name : `layer ${state.layer + 1}`}`;
  return {
    lines: [payload.title, `${source.run.name} · ${what}${heads}${selected}`],
    colours: lines ? picture.series.map((one) => ({ name: one.short, colour: headColour(palette, one.colour) })) : [],
    ink: palette.ink,
    soft: palette.soft,
  };
}

function View(props: ViewProps) {
  if (!props.picture.rows.length || !props.picture.columns.length) return <p class="note">With these choices no token is left to show.</p>;
  switch (props.state.view) {
    case "head": return <><Share {...props} /><HeadView {...props} /></>;
    case "model": return <ModelView {...props} />;
    case "matrix": return <><Share {...props} /><MatrixView {...props} /></>;
    case "neuron": return <NeuronView {...props} />;
    case "difference": return <DifferenceView {...props} />;
  }
}

function Beside(props: ViewProps) {
  const { view } = props.state;
  if (view === "model") return <aside class="details"><Enlarged {...props} /></aside>;
  return view === "head" || view === "matrix" ? <Details {...props} /> : null;
}

function usualState(payload: Payload, sources: Source[]): State {
  const [{ layers, heads, pieces }] = sources;
  return fromHash(payload.state, defaults(layers, heads, pieces), sources[0]);
}

/** The nearest state that the payload can show. */
function valid(state: State, sources: Source[]): State {
  const run = Math.max(0, Math.min(sources.length - 1, state.run));
  const source = sources[run];
  const heads = state.heads.filter((head) => head < source.heads);
  const quantity = Math.max(0, Math.min(source.quantities.length - 1, state.quantity));
  return {
    ...state,
    run,
    view: available(state.view, source, sources) ? state.view : "head",
    quantity,
    layer: Math.max(0, Math.min(source.layers - 1, state.layer)),
    heads: heads.length ? heads : [0],
    part: source.run.pair ? state.part : "all",
    ...(weighable({ ...state, quantity }, source) ? {} : { across: plain(state.across), fusion: plain(state.fusion) }),
    top: Math.max(1, state.top),
  };
}

function plain<Way extends string>(way: Way): Way | "mean" {
  return way === "norm" ? "mean" : way;
}

/** The part of the state that the weights on screen depend on. */
function picturedBy(state: State): string {
  const { view, run, quantity, layer, heads, across, fusion, units, special, part, keep, threshold, top } = state;
  return JSON.stringify([view, run, quantity, layer, heads, across, fusion, units, special, part, keep, threshold, top]);
}

async function loaded(state: State, sources: Source[]): Promise<void> {
  const source = sources[state.run];
  const every = Array.from({ length: source.layers }, (_, layer) => layer);
  const all = state.view === "model" || state.view === "difference";
  for (const one of state.view === "difference" ? sources : [source]) {
    const layers = all ? every.filter((layer) => layer < one.layers) : layersNeeded(state, one);
    await one.quantities[Math.min(state.quantity, one.quantities.length - 1)].load(layers);
    if (state.fusion === "norm" || state.across === "norm") await one.lengths?.load(layers);
  }
  if (state.view === "neuron") {
    await source.query!.load([state.layer]);
    await source.key!.load([state.layer]);
  }
}

/** Decode the layers above and below while nothing else is to be done, so that switching to them is quick. */
async function neighbours({ layer, quantity }: State, source: Source): Promise<void> {
  const beside = [layer + 1, layer - 1].filter((one) => one >= 0 && one < source.layers);
  await source.quantities[quantity].load(beside);
}

function useWidth(): [RefObject<HTMLElement | null>, number] {
  const element = useRef<HTMLElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const watcher = new ResizeObserver(([entry]) => setWidth(Math.floor(entry.contentRect.width)));
    watcher.observe(element.current!);
    setWidth(Math.floor(element.current!.getBoundingClientRect().width));
    return () => watcher.disconnect();
  }, []);
  return [element, width];
}

function useDark(theme: State["theme"]): boolean {
  const query = useMemo(() => window.matchMedia("(prefers-color-scheme: dark)"), []);
  const [dark, setDark] = useState(query.matches);
  useEffect(() => {
    const changed = () => setDark(query.matches);
    query.addEventListener("change", changed);
    return () => query.removeEventListener("change", changed);
  }, []);
  return theme === "auto" ? dark : theme === "dark";
}
