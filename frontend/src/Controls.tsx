// The controls: view, layer and heads, and how weights are filtered, merged and combined.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { headColour } from "./colours";
import type { Palette } from "./palette";
import { canRollOut, canWeightByNorm } from "./compose";
import type { Source } from "./source";
import { labelText } from "./labels";
import { keepOf, type State, type Update } from "./state";
import { relationsOf } from "./trees";

interface Props {
  state: State;
  update: Update;
  source: Source;
  sources: Source[];
  palette: Palette;
  exports: ComponentChildren;
  tour: () => void;
  help: () => void;
}

const VIEW_NAMES: { [view in State["view"]]: string } = { head: "Heads", model: "Model", matrix: "Matrix", neuron: "Neurons", difference: "Difference" };

export function available(view: State["view"], source: Source, sources: Source[]): boolean {
  if (view === "neuron") return source.query !== null && source.key !== null;
  return view !== "difference" || (sources.length > 1 && !source.run.role);
}

export function Controls({ state, update, source, sources, palette, exports, tour, help }: Props) {
  const { run } = source;
  const [more, setMore] = useState(false);
  const views = (Object.keys(VIEW_NAMES) as State["view"][]).filter((view) => available(view, source, sources));
  return (
    <div class="controls" role="toolbar" aria-label="Settings">
      <div class="tabs" role="group" aria-label="View">
        {views.map((view) => (
          <button type="button" key={view} data-view={view} aria-pressed={state.view === view} onClick={() => update({ view })}>{VIEW_NAMES[view]}</button>
        ))}
      </div>
      {sources.length > 1 && state.view !== "difference" && (
        <Choice name="Run" value={String(state.run)} options={sources.map((each, index) => [String(index), each.run.name])} choose={(value) => update({ run: Number(value) })} />
      )}
      {run.quantities.length > 1 && (
        <Choice name="Quantity" value={String(state.quantity)} options={run.quantities.map((quantity, index) => [String(index), quantity.name])} choose={(value) => update({ quantity: Number(value) })} />
      )}
      {state.view !== "model" && state.view !== "difference" && <LayerChoice state={state} update={update} source={source} />}
      {(state.view === "head" || state.view === "matrix" || state.view === "neuron") && <HeadChoice state={state} update={update} source={source} palette={palette} />}
      <button type="button" class="more" aria-expanded={more} onClick={() => setMore(!more)}>{more ? "Fewer settings" : "More settings"}</button>
      <div class={`secondary ${more ? "open" : ""}`}>
        {(state.view === "head" || state.view === "matrix") && <Aggregation state={state} update={update} source={source} />}
        {(state.view === "head" || state.view === "matrix") && run.trees.length > 0 && <TreeChoice state={state} update={update} source={source} />}
        {(state.view === "head" || state.view === "matrix") && <RelationChoice state={state} update={update} source={source} />}
        {state.view !== "neuron" && <Filters state={state} update={update} source={source} />}
      </div>
      <div class="right">
        <Choice name="Theme" value={state.theme} options={[["auto", "system"], ["light", "light"], ["dark", "dark"]]} choose={(theme) => update({ theme: theme as State["theme"] })} />
        <button type="button" data-choice="Tour" onClick={tour}>Tour</button>
        <button type="button" data-choice="Help" aria-label="Keyboard shortcuts" title="Keyboard shortcuts" onClick={help}>?</button>
        {exports}
      </div>
    </div>
  );
}

function Aggregation({ state, update, source }: { state: State; update: Update; source: Source }) {
  const rollout: [string, string][] = canRollOut(source) ? [["rollout", "rollout up to this layer"]] : [];
  const norm: [string, string][] = canWeightByNorm(state, source) ? [["norm", "norm-weighted mean"]] : [];
  return (
    <>
      <Choice name="Combine heads" value={state.fusion} options={[["each", "separate"], ["mean", "mean"], ["max", "maximum"], ...norm]} choose={(fusion) => update({ fusion: fusion as State["fusion"] })} />
      <Choice name="Combine layers" value={state.across} options={[["one", "one layer"], ["mean", "mean of all"], ["max", "maximum of all"], ...norm, ...rollout]} choose={(across) => update({ across: across as State["across"] })} />
    </>
  );
}

function TreeChoice({ state, update, source }: { state: State; update: Update; source: Source }) {
  const trees = source.run.trees.map((tree): [string, string] => [tree.directed ? "gold" : "predicted", tree.name]);
  const options: [string, string][] = [["all", "all"], ...new Map(trees), ["none", "none"]];
  return <Choice name="Dependency arcs" value={state.tree} options={options.length > 3 ? options : options.slice(1).map(([key, name]) => [key === "none" ? key : "all", name])} choose={(tree) => update({ tree: tree as State["tree"] })} />;
}

/** Which relation's arcs are shown. */
function RelationChoice({ state, update, source }: { state: State; update: Update; source: Source }) {
  const relations = relationsOf(source);
  if (relations.length < 2 || state.tree === "none" || state.tree === "predicted") return null;
  return <Choice name="Relation" value={state.relation} options={[["", "all"], ...relations.map((relation): [string, string] => [relation, relation])]} choose={(relation) => update({ relation })} />;
}

function Filters({ state, update, source }: { state: State; update: Update; source: Source }) {
  const { run } = source;
  return (
    <>
      {run.tokens.some((token, index) => index > 0 && token.word_index >= 0 && token.word_index === run.tokens[index - 1].word_index) && (
        <Choice name="Tokens" value={state.units} options={[["tokens", "tokens"], ["words", "words"]]} choose={(units) => update({ units: units as State["units"], token: -1, sortRow: -1, sortColumn: -1 })} />
      )}
      {run.tokens.some((token) => token.special) && (
        <Choice name="Special tokens" value={state.view === "difference" && state.special === "fade" ? "show" : state.special} options={[...(state.view === "difference" ? [] : [["fade", "faded"]] as [string, string][]), ["show", "shown"], ["hide", "hidden"], ["renormalise", "hidden, renormalised"]]} choose={(special) => update({ special: special as State["special"] })} />
      )}
      {run.is_pair && run.role !== "cross" && (
        <Choice name="Sentences" value={state.part} options={[["all", "all"], ["aa", "A → A"], ["ab", "A → B"], ["ba", "B → A"], ["bb", "B → B"]]} choose={(part) => update({ part: part as State["part"] })} />
      )}
      <Choice name="Weights" value={keepOf(state)} options={[["mass", "strongest share"], ["all", "all"], ["threshold", "above a threshold"], ["top", "strongest per token"]]} choose={(keep) => update({ keep: keep as State["keep"] })} />
      {keepOf(state) === "mass" && (
        <label class="choice">
          <span>Share {Math.round(100 * state.mass)} %</span>
          <input type="range" min="0.3" max="0.99" step="0.01" value={state.mass} data-choice="Share" onInput={(event) => update({ keep: "mass", mass: Number(event.currentTarget.value) })} />
        </label>
      )}
      {state.keep === "threshold" && (
        <label class="choice">
          <span>Threshold {state.threshold.toFixed(2)}</span>
          <input type="range" min="0.01" max="0.5" step="0.01" value={state.threshold} onInput={(event) => update({ threshold: Number(event.currentTarget.value) })} />
        </label>
      )}
      {state.keep === "top" && (
        <label class="choice">
          <span>Per token</span>
          <input type="number" min="1" max={source.nTokens} value={state.top} onInput={(event) => update({ top: Math.max(1, Math.trunc(Number(event.currentTarget.value)) || 1) })} />
        </label>
      )}
    </>
  );
}

function Choice({ name, value, options, choose }: { name: string; value: string; options: [string, string][]; choose: (value: string) => void }) {
  return (
    <label class="choice">
      <span>{name}</span>
      <select value={value} data-choice={name} onChange={(event) => choose(event.currentTarget.value)}>
        {options.map(([key, text]) => (
          <option key={key} value={key}>{text}</option>
        ))}
      </select>
    </label>
  );
}

function LayerChoice({ state, update, source }: { state: State; update: Update; source: Source }) {
  const { layers } = source;
  return (
    <div class="choice layer">
      <span id="layer-name">Layer</span>
      <div class="row">
        <button type="button" aria-label="Previous layer" disabled={state.layer === 0} onClick={() => update({ layer: state.layer - 1 })}>‹</button>
        <select aria-labelledby="layer-name" data-choice="Layer" value={state.layer} onChange={(event) => update({ layer: Number(event.currentTarget.value) })}>
          {Array.from({ length: layers }, (_, layer) => (
            <option key={layer} value={layer}>{source.layerNumber(layer)}</option>
          ))}
        </select>
        <button type="button" aria-label="Next layer" disabled={state.layer === layers - 1} onClick={() => update({ layer: state.layer + 1 })}>›</button>
      </div>
    </div>
  );
}

function HeadChoice({ state, update, source, palette }: { state: State; update: Update; source: Source; palette: Palette }) {
  const single = state.view === "neuron";
  const every = Array.from({ length: source.heads }, (_, head) => head);
  const toggle = (head: number, alone: boolean) => {
    if (alone || single) return update({ heads: [head] });
    const heads = state.heads.includes(head) ? state.heads.filter((other) => other !== head) : [...state.heads, head].sort((a, b) => a - b);
    return heads.length ? update({ heads }) : undefined;
  };
  return (
    <div class="choice heads" role="group" aria-label="Heads">
      <span>{single ? "Head" : "Heads (double-click: only this one)"}</span>
      <div class="chips">
        {every.map((head) => {
          const labels = source.labels(state.layer, head);
          const pressed = single ? state.heads[0] === head : state.heads.includes(head);
          return (
            <button
              type="button"
              key={head}
              data-chip={source.headNumber(head)}
              class="chip"
              aria-pressed={pressed}
              aria-label={[`${source.headNumber(head)}: head ${source.nameOf(state.layer, head)}`, ...labels.map(labelText)].join(", ")}
              title={[`Head ${source.nameOf(state.layer, head)}`, ...labels.map((label) => `${labelText(label)} (${label.evidence})`)].join("\n")}
              style={{ "--colour": headColour(palette, head) }}
              onClick={(event) => toggle(head, event.shiftKey)}
              onDblClick={() => toggle(head, true)}
            >
              {source.headNumber(head)}
              {labels.length > 0 && <i class="dot" />}
            </button>
          );
        })}
        {!single && (
          <button type="button" class="chip all" onClick={() => update({ heads: state.heads.length === every.length ? [state.heads[0]] : every })}>
            {state.heads.length === every.length ? "one" : "all"}
          </button>
        )}
      </div>
    </div>
  );
}
