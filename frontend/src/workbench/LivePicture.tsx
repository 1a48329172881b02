// The chosen view of the live picture, with its settings above and one sentence about the selected token below.
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { captionText, citationKeys, figureCaption, type Shown } from "../caption";
import { canRollOut, compose, type Picture, unitName } from "../compose";
import { pinned, type TokenSelection, type ViewProps } from "../context";
import { loadLayers, pictureKey, useWidth, View } from "../drawing";
import { type Figure, withCaption } from "../figure";
import { formatPercent } from "../numbers";
import type { Palette } from "../palette";
import type { HeadLabel, Payload } from "../payload";
import { Source } from "../source";
import { defaults, type Patch, type State } from "../state";
import { arcsOf } from "../trees";
import { meanWeights } from "../views/HeadView";
import type { Bench } from "./address";
import type { Live, UpdateBench } from "./use";

const VIEW_NAMES: [Bench["view"], string][] = [["head", "lines"], ["matrix", "matrix"], ["neuron", "neurons"], ["model", "all heads"], ["difference", "A and B"]];
const QUANTITY_NAMES: [Bench["quantity"], string][] = [["attention", "attention"], ["norm", "norm-weighted"], ["gradient", "× gradient"], ["rollout", "rollout"]];

/** What the footer saves and copies. */
export interface Kept {
  figure: () => Figure | null;
  picture: Picture;
  caption: string;
  citations: string[]; // keys of papers
}

interface Props {
  bench: Bench;
  update: UpdateBench;
  live: Live | null;
  liveKey: string; // of what is asked for now
  labels: HeadLabel[];
  palette: Palette;
  keep: (kept: Kept) => void;
  drawn: (milliseconds: number) => void;
}

interface Frame {
  live: Live;
  sources: Source[];
  state: State;
  picture: Picture;
}

export function LivePicture({ bench, update, live, liveKey, labels, palette: wholePalette, keep, drawn }: Props) {
  // One head is looked at: it has the colour of the page, whatever its number.
  const palette = useMemo(() => ({ ...wholePalette, series: [wholePalette.series[0]] }), [wholePalette]);
  const [main, width] = useWidth();
  const [extra, setExtra] = useState<Patch>({});
  const [frame, setFrame] = useState<Frame | null>(null);
  const [hovered, setHovered] = useState<TokenSelection | null>(null);
  const figure = useRef<Figure | null>(null);
  const setFigure = useCallback((drawing: Figure) => void (figure.current = drawing), []);
  const sources = useMemo(() => (live ? sourcesOf(live, labels) : []), [live, labels]);
  // Settings that need no other weights apply at once; others when their weights are there.
  const shownBench = live && live.key === liveKey ? bench : live?.bench;
  const state = shownBench && sources.length ? stateOf(shownBench, sources, extra) : null;
  useEffect(() => {
    if (!live || !state) return undefined;
    let isOutdated = false;
    void loadLayers(state, sources).then(() => {
      if (!isOutdated) setFrame({ live, sources, state, picture: compose(state, sources[state.run]) });
    });
    return () => {
      isOutdated = true;
    };
  }, [sources, state && pictureKey(state)]);
  useEffect(() => {
    if (frame) requestAnimationFrame(() => drawn(performance.now() - frame.live.sent));
  }, [frame?.live]);
  const updateView = useCallback(({ layer, heads, token, side, view, units, special, ...rest }: Patch) => {
    setHovered(null);
    const source = sources[0];
    const patch: Partial<Bench> = {};
    if (source && (layer !== undefined || heads !== undefined)) {
      const [oldLayer, oldHead] = bench.head.split("-");
      patch.head = `${layer === undefined ? oldLayer : source.layerNumber(layer)}-${heads === undefined ? oldHead : source.headNumber(heads[0])}`;
    }
    for (const [name, value] of Object.entries({ token, side, view, units, special })) if (value !== undefined) Object.assign(patch, { [name]: value });
    if (Object.keys(rest).length) setExtra((old) => ({ ...old, ...rest }));
    if (Object.keys(patch).length) update(patch, token !== undefined ? "replace" : "push");
  }, [sources, bench.head]);

  const current = frame && state && pictureKey(frame.state) === pictureKey(state) && frame.sources === sources ? state : frame?.state;
  const selection = frame && current ? hovered ?? pinned(current, frame.picture) : null;
  const source = frame?.sources[current?.run ?? 0];
  const arcs = useMemo(() => (frame && current && source ? arcsOf(current, source, frame.picture) : []), [frame, current?.tree]);
  const payload = useMemo(() => payloadOf(frame?.live ?? live), [frame, live]);
  const props: ViewProps | null = frame && current && source && width > 0
    ? { payload, sources: frame.sources, source, state: current, update: updateView, picture: frame.picture, arcs, palette, width, selection, hover: setHovered, setFigure }
    : null;
  useEffect(() => {
    if (!frame || !current || !source) return;
    const shown: Shown = { payload, state: current, picture: frame.picture, source, selection };
    keep({ figure: () => figure.current && withCaption(figure.current, figureCaption(shown, palette)), picture: frame.picture, caption: captionText(shown).join(" "), citations: [...citationKeys(shown)] });
  }, [frame, current, selection, palette]);
  const isCompared = bench.against !== "";
  const layerIsOff = live !== null && live.key === liveKey && !sources.length;
  const canRoll = !sources[0] || live?.key !== liveKey || bench.quantity !== "rollout" || canRollOut(sources[0]);
  return (
    <>
      <div class="view-settings" role="toolbar" aria-label="View">
        <div class="words" role="group" aria-label="View">
          {VIEW_NAMES.filter(([view]) => view !== "difference" || isCompared).map(([view, name]) => <button type="button" key={view} data-view={view} aria-pressed={bench.view === view} onClick={() => update({ view })}>{name}</button>)}
        </div>
        <label><span class="spoken">Quantity</span>
          <select data-choice="Quantity" value={bench.quantity} onChange={(event) => update({ quantity: event.currentTarget.value as Bench["quantity"] })}>
            {QUANTITY_NAMES.filter(([quantity]) => quantity !== "rollout" || bench.view === "head" || bench.view === "matrix").map(([quantity, name]) => <option key={quantity} value={quantity}>{name}</option>)}
          </select>
        </label>
        <label><span class="spoken">Special tokens</span>
          <select data-choice="Special tokens" value={bench.special} onChange={(event) => update({ special: event.currentTarget.value as Bench["special"] })}>
            {[["fade", "special tokens faded"], ["show", "special tokens shown"], ["hide", "special tokens hidden"], ["renormalise", "hidden, renormalised"]].map(([value, name]) => <option key={value} value={value}>{name}</option>)}
          </select>
        </label>
        <label><span class="spoken">Units</span>
          <select data-choice="Units" value={bench.units} onChange={(event) => update({ units: event.currentTarget.value as Bench["units"], token: -1 })}>
            <option value="tokens">tokens</option>
            <option value="words">words</option>
          </select>
        </label>
      </div>
      {layerIsOff && <p class="note">Layer {bench.head.split("-")[0]} is off, so that it attends to nothing. Choose a head of another layer.</p>}
      {!canRoll && <p class="note">Rollout needs all layers: attention of one layer is shown.</p>}
      <section ref={main} aria-label="Picture" class={`picture ${current?.view ?? ""}`} data-ready={current?.view ?? ""} data-shown={frame ? JSON.stringify([frame.live.key, current?.layer, current?.heads]) : ""}>
        {props && !layerIsOff && <View {...props} />}
      </section>
      {props && !layerIsOff && <Sentence {...props} />}
    </>
  );
}

/** One sentence about the selected token. */
function Sentence({ picture, selection, state, source }: ViewProps) {
  if (state.view !== "head" && state.view !== "matrix") return null;
  if (!selection) return <p class="note sentence">One text. Move over a token to see its weights; click it, or press Enter, to keep it selected.</p>;
  const isFrom = selection.side === "from";
  const weights = meanWeights(picture, selection);
  const best = weights.reduce((top, value, index) => (value > (weights[top] ?? -Infinity) ? index : top), 0);
  const token = picture.units[(isFrom ? picture.rows : picture.columns)[selection.position]];
  const target = picture.units[(isFrom ? picture.columns : picture.rows)[best]];
  if (!token || !target) return null;
  const quantity = source.run.quantities[state.quantity].name;
  const share = state.quantity === 0 && state.across === "one" ? `${formatPercent(weights[best])} of the attention of` : `The largest ${quantity} weight (${weights[best].toPrecision(2)}) of`;
  return (
    <p class="note sentence" role="status">
      {isFrom ? <>{share} “<bdi>{unitName(token)}</bdi>” is on “<bdi>{unitName(target)}</bdi>”; uniform attention would put {formatPercent(1 / picture.columns.length)} there.</> : <>“<bdi>{unitName(token)}</bdi>” receives most from “<bdi>{unitName(target)}</bdi>”: {formatPercent(weights[best])} of its attention.</>} One text.
    </p>
  );
}

function sourcesOf({ answers }: Live, labels: HeadLabel[]): Source[] {
  if (!answers[0].layers.length) return [];
  const names = answers.map(({ run }, index) => (answers.length > 1 ? `${"AB"[index]}: ${run.name}` : run.name));
  return answers.filter(({ layers }) => layers.length).map(({ run, layers }, index) => {
    const shown = labels.filter(({ layer }) => layers.includes(layer + 1)).map((label) => ({ ...label, layer: layers.indexOf(label.layer + 1) }));
    return new Source({ ...run, name: names[index], labels: index ? [] : shown });
  });
}

function stateOf(bench: Bench, sources: Source[], extra: Patch): State {
  const [source] = sources;
  const [layer, head] = bench.head.split("-").map(Number);
  const numbers = Array.from({ length: source.layers }, (_, index) => source.layerNumber(index));
  const isRolled = bench.quantity === "rollout" && canRollOut(source) && (bench.view === "head" || bench.view === "matrix");
  const view = bench.view === "difference" && sources.length < 2 ? "head" : bench.view === "neuron" && !(source.query && source.key) ? "head" : bench.view;
  return {
    ...defaults(),
    compared: "chosen",
    ...extra,
    view,
    quantity: bench.quantity === "attention" || bench.quantity === "rollout" ? 0 : source.quantities.length - 1,
    layer: Math.max(0, numbers.indexOf(layer)),
    heads: isRolled ? Array.from({ length: source.heads }, (_, index) => index) : [Math.max(0, Math.min(source.heads, head) - 1)],
    across: isRolled ? "rollout" : "one",
    fusion: isRolled ? "mean" : "each",
    units: bench.units,
    special: bench.special,
    token: bench.token,
    side: bench.side,
  };
}

function payloadOf(live: Live | null): Payload {
  const words = live?.answers[0].run.words.join(" ") ?? "";
  return { title: words, runs: live?.answers.map(({ run }) => run) ?? [], notes: [], state: "", command: "", citations: [] };
}
