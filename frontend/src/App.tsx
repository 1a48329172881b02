// The application: holds the state, loads the layers it needs, and shows one view with details at its side.
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { DARK, LIGHT, type Palette } from "./palette";
import { canRollOut, compose, type Picture, canWeightByNorm } from "./compose";
import { type TokenSelection, pinned, type ViewProps } from "./context";
import { available, Controls } from "./Controls";
import { loadLayers, pictureKey, useDark, useWidth, View } from "./drawing";
import { Export } from "./Export";
import { bibtexOf, captionText, commandOf, figureCaption, type Shown } from "./caption";
import { withCaption, type Figure } from "./figure";
import { Help } from "./Help";
import type { Payload } from "./payload";
import { useShortcuts } from "./shortcuts";
import { Source } from "./source";
import { defaults, fromHash, type Patch, type State, toHash } from "./state";
import { arcsOf } from "./trees";
import { Tour } from "./Tour";
import { Details } from "./views/Details";
import { SmallMultiples } from "./views/SmallMultiples";

/** Where the host stores the state: a page in its address, a notebook in the widget's model. */
export interface StateStore {
  read: () => string;
  write: (hash: string) => void;
  listen: (onChange: () => void) => () => void; // returns what ends it
  link: ((hash: string) => string) | null;
  ownsPage: boolean; // whether nothing else is on the page: then letters are shortcuts wherever the focus is
}

interface Frame {
  state: State;
  picture: Picture;
}

export function App({ payload, store }: { payload: Payload; store: StateStore }) {
  const sources = useMemo(() => payload.runs.map((run) => new Source(run)), [payload]);
  const defaultState = useMemo(() => initialState(payload, sources), [payload]);
  const read = () => nearestValid(fromHash(store.read() || payload.state, defaultState, sources[0]), sources);
  const [state, setState] = useState<State>(read);
  const [shown, setShown] = useState<Frame | null>(null);
  const [tour, setTour] = useState(-1);
  const [help, setHelp] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const [hovered, setHovered] = useState<TokenSelection | null>(null);
  const figure = useRef<Figure | null>(null);
  const [main, width] = useWidth();
  const dark = useDark(state.theme);
  const palette = dark ? DARK : LIGHT;
  const update = useCallback((patch: Patch) => {
    setHovered(null);
    setState((old) => nearestValid({ ...old, ...patch }, sources));
  }, [sources]);

  useEffect(() => store.listen(() => setState(read())), []);
  useEffect(() => store.write(toHash(state, defaultState, sources[0])), [state]);
  useEffect(() => {
    let outdated = false;
    void loadLayers(state, sources).then(() => {
      if (outdated) return;
      setShown({ state, picture: compose(state, sources[state.run]) });
      setTimeout(() => outdated || void preloadNeighbours(state, sources[state.run]), 300);
    });
    return () => {
      outdated = true;
    };
  }, [pictureKey(state)]);

  useShortcuts(root, store.ownsPage, { state, sources, update, release: () => setHovered(null), tour: () => setTour(0), help: () => setHelp(true) });

  // While a layer is decoded the previous picture stays; settings that need no other weights apply at once.
  const current = shown && pictureKey(shown.state) === pictureKey(state) ? state : shown?.state;
  const selection = shown && current ? hovered ?? pinned(current, shown.picture) : null;
  const setFigure = useCallback((drawing: Figure) => void (figure.current = drawing), []);
  const source = sources[(current ?? state).run];
  const arcs = useMemo(() => (shown && current ? arcsOf(current, source, shown.picture) : []), [shown, current?.tree, current?.relation]);
  const props: ViewProps | null = shown && current && width > 0
    ? { payload, sources, source, state: current, update, picture: shown.picture, arcs, palette, width, selection, hover: setHovered, setFigure }
    : null;
  const hash = () => toHash(state, defaultState, sources[0]);
  const exported = shown && current && <Exports {...{ payload, state: current, picture: shown.picture, source, selection }} palette={palette} figure={figure} link={store.link && (() => store.link!(hash()))} hash={hash} />;
  const opening = { layer: defaultState.layer, head: defaultState.heads[0] };
  return (
    <div class="views" ref={root} data-theme={dark ? "dark" : "light"} data-ready={props ? current!.view : ""} data-shown={shown ? pictureKey(shown.state) : ""}>
      <header>
        <h1 title={payload.title}><bdi>{payload.title}</bdi></h1>
        <p class="about">
          <bdi>{source.run.name}</bdi>{state.view === "difference" && <> and <bdi>{sources[1].run.name}</bdi></>}{source.run.model && source.run.model !== source.run.name && <> · {source.run.model}</>} · {source.layers} layers, {source.heads} heads · {source.nTokens} tokens · {source.run.quantities[state.quantity].description}, {precisionText(source, state.quantity)}
        </p>
        {payload.notes.map((note) => <p class="note" key={note}>{note}</p>)}
        <Controls state={state} update={update} source={source} sources={sources} palette={palette} exports={exported} tour={() => setTour(0)} help={() => setHelp(true)} />
      </header>
      <div class={`body ${state.view}`}>
        {props && props.state.view === "head" && props.source.heads > 1 && <SmallMultiples {...props} />}
        <main ref={main}>{props && <View {...props} />}</main>
        {props && <SidePanel {...props} />}
      </div>
      {tour >= 0 && <Tour payload={payload} source={sources[0]} opening={opening} step={tour} go={setTour} update={update} />}
      {help && <Help close={() => setHelp(false)} />}
    </div>
  );
}

interface ExportsProps extends Shown {
  palette: Palette;
  figure: { current: Figure | null };
  link: (() => string) | null;
  hash: () => string;
}

function Exports({ palette, figure, link, hash, ...shown }: ExportsProps) {
  const { payload, state, picture } = shown;
  const texts: Parameters<typeof Export>[0]["texts"] = {};
  if (link) texts.link = { title: "Link", text: link };
  texts.caption = { title: "Caption", text: () => captionText(shown).join(" ") };
  if (bibtexOf(shown)) texts.bibtex = { title: "BibTeX", text: () => bibtexOf(shown) };
  if (payload.command) texts.command = { title: "Command", text: () => commandOf(payload, hash()) };
  return <Export figure={() => figure.current && withCaption(figure.current, figureCaption(shown, palette))} picture={picture} background={palette.background} name={payload.title} view={state.view} texts={texts} />;
}

/** How exactly the weights of a quantity are stored. */
function precisionText(source: Source, quantity: number): string {
  const { levels } = source.run.quantities[quantity].weights;
  return levels ? `stored in steps of 1/${levels} of the largest weight of each row` : "exact";
}

function SidePanel(props: ViewProps) {
  const { view } = props.state;
  return view === "head" ? <Details {...props} /> : null;
}

function initialState(payload: Payload, sources: Source[]): State {
  return fromHash(payload.state, defaults(), sources[0]);
}

/** The nearest valid state for the payload. */
function nearestValid(state: State, sources: Source[]): State {
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
    part: source.run.role === "cross" ? "ba" : source.run.is_pair ? state.part : "all",
    ...(canWeightByNorm({ ...state, quantity }, source) ? {} : { across: withoutNorm(state.across), fusion: withoutNorm(state.fusion) }),
    ...(state.across === "rollout" && !canRollOut(source) ? { across: "one" as const } : {}),
    top: Math.max(1, state.top),
  };
}

function withoutNorm<Method extends string>(method: Method): Method | "mean" {
  return method === "norm" ? "mean" : method;
}

/** Decode the adjacent layers while idle, so that switching to them is fast. */
async function preloadNeighbours({ layer, quantity }: State, source: Source): Promise<void> {
  const adjacent = [layer + 1, layer - 1].filter((index) => index >= 0 && index < source.layers);
  await source.quantities[quantity].load(adjacent);
}
