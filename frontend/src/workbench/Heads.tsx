// The atlas: every head as a cell, coloured by a measure of this text or of the corpus.
import { useMemo, useRef } from "preact/hooks";
import type { LiveAnswer, MeasureList } from "../api";
import { Scale } from "../colours";
import { labelText } from "../labels";
import type { Palette } from "../palette";
import { ColourBar, type Bar } from "../views/ColourBar";
import { nextPlace } from "../views/headKeys";
import { corpusMeasures, describeHead, formatMeasure, type Measure, neutralOf, ranking } from "../views/measures";
import type { Bench } from "./address";
import type { UpdateBench } from "./use";

const ONE_TEXT = "this one text";
const CHANGE = "change from B";

interface Props {
  bench: Bench;
  update: UpdateBench;
  answers: LiveAnswer[];
  list: MeasureList;
  shape: { layers: number; heads: number };
  lookedAt: string[];
  palette: Palette;
}

export function Heads({ bench, update, answers, list, shape, lookedAt, palette }: Props) {
  const grid = useRef<HTMLDivElement>(null);
  const { layers, heads } = shape;
  const measures = useMemo(() => [...textMeasures(answers, shape), ...corpusMeasures(list.measures)], [answers, list, layers, heads]);
  const measure = measures.find((each) => keyOf(each) === bench.colour) ?? measures.find(({ name }) => name === "highest weight") ?? measures[0];
  const colours = useMemo(() => measure && barOf(measure, palette), [measure, palette]);
  const ranked = useMemo(() => (measure ? ranking(measure) : []), [measure]);
  const changed = new Set([...bench.off, ...bench.uniform, ...bench.mean]);
  const name = (index: number) => `${Math.trunc(index / heads) + 1}-${(index % heads) + 1}`;
  const isRemoved = (index: number) => changed.has(name(index)) || bench.layersOff.includes(Math.trunc(index / heads) + 1) || (bench.keep.length > 0 && !bench.keep.includes(name(index)));
  const onKeyDown = (event: KeyboardEvent) => {
    const place = nextPlace(event, Number((event.target as HTMLElement).dataset.index), heads, layers * heads);
    if (place === null) return;
    event.preventDefault();
    event.stopPropagation();
    grid.current!.querySelector<HTMLElement>(`[data-index="${place}"]`)?.focus();
    update({ head: name(place) }, "replace");
  };
  const describe = (index: number) => [`Head ${name(index)}`, ...list.labels.filter(({ layer, head }) => layer * heads + head === index).map(labelText), ...(measure ? describeHead(measure, index, ranked.indexOf(index)) : [])];
  const n = new Set(lookedAt).size;
  // A key changes the text, and not yet any cell: all of them are made again only when something they show has changed.
  const changes = JSON.stringify([bench.off, bench.uniform, bench.mean, bench.keep, bench.layersOff]);
  const cells = useMemo(() => Array.from({ length: layers * heads }, (_, index) => {
    const value = measure?.values[index] ?? NaN;
    const isChosen = name(index) === bench.head;
    return [
      index % heads === 0 && <span class="row-name" key={`layer ${index}`} aria-hidden="true">{index / heads + 1}</span>,
      <button
        type="button" key={index} data-index={index} data-head={name(index)} class={isRemoved(index) ? "removed" : ""} aria-pressed={isChosen}
        tabIndex={isChosen || (!bench.head && index === 0) ? 0 : -1} title={describe(index).join("\n")}
        aria-label={`Head ${name(index)}${measure ? `, ${measure.name} ${formatMeasure(value)}` : ""}${isRemoved(index) ? ", changed" : ""}`}
        style={{ background: colours && value === value ? colours.scale.css(value - colours.neutral) : "var(--field)" }}
        onClick={() => update({ head: name(index) })}
      />,
    ];
  }), [measure, colours, ranked, list.labels, bench.head, changes, layers, heads]);
  return (
    <section class="heads-atlas" aria-label="All heads">
      <div class="spread">
        <h2>All heads</h2>
        <label class="colour">
          <span>colour</span>
          <select data-choice="Colour" value={measure ? keyOf(measure) : ""} onChange={(event) => update({ colour: event.currentTarget.value })}>
            {[...new Set(measures.map(({ source }) => source))].map((source) => (
              <optgroup key={source} label={source}>
                {measures.filter((each) => each.source === source).map((each) => <option key={keyOf(each)} value={keyOf(each)}>{each.name}</option>)}
              </optgroup>
            ))}
          </select>
        </label>
      </div>
      <div class="cells" ref={grid} role="group" aria-label={`Heads: ${layers} layers down, ${heads} heads across`} style={{ gridTemplateColumns: `18px repeat(${heads}, minmax(0, 1fr))` }} onKeyDown={onKeyDown}>
        {cells}
        <span />
        {Array.from({ length: heads }, (_, head) => <span class="column-name" key={head} aria-hidden="true">{head + 1}</span>)}
      </div>
      {measure && colours && <ColourBar bar={colours} name={measure.name} />}
      <p class="note">
        {measure && <>{measure.name} ({measure.source}{measure.n[0] > 0 && measure.source !== ONE_TEXT ? `, n = ${Math.max(...measure.n).toLocaleString("en")}` : ""}). </>}
        {bench.head} selected{changed.size > 0 && ` · ${changed.size} changed`} · <b data-counter>{n} of {layers * heads} heads looked at</b>{n > 5 && ": the best of many is high by chance too"}
      </p>
    </section>
  );
}

function keyOf({ name, source }: Measure): string {
  return source === ONE_TEXT || source === CHANGE ? `${name} · ${source}` : `${name} · ${source.split(" ")[0]}`;
}

/** The measures of this text, of all layers of the unchanged model; those that do not run have none. */
function textMeasures(answers: LiveAnswer[], { layers, heads }: { layers: number; heads: number }): Measure[] {
  const [first, second] = answers;
  if (!first) return [];
  const flat = (answer: LiveAnswer, index: number) => {
    const values = new Array<number>(layers * heads).fill(NaN);
    answer.measures[index].values.forEach((row, at) => row.forEach((value, head) => (values[(answer.running_layers[at] - 1) * heads + head] = value)));
    return values;
  };
  const count = new Array<number>(layers * heads).fill(first.n_tokens);
  const base = { interval: "", low: null, high: null, n: count, step: 0, lowest: false, is_p_value: false };
  const own = first.measures.map(({ name, unit, uniform }, index): Measure => ({ ...base, name, unit, source: ONE_TEXT, values: flat(first, index), baselines: uniform === null ? [] : [{ name: "uniform attention", values: count.map(() => uniform) }] }));
  if (!second || second.measures.length !== first.measures.length || second.measures[0]?.values[0]?.length !== heads) return own;
  const changes = first.measures.map(({ name, unit }, index): Measure => {
    const [a, b] = [flat(first, index), flat(second, index)];
    return { ...base, name, unit, source: CHANGE, values: a.map((value, at) => value - b[at]), baselines: [] };
  });
  return [...own, ...changes];
}

interface Colours extends Bar {
  neutral: number;
}

function barOf(measure: Measure, palette: Palette): Colours | null {
  const known = measure.values.filter(Number.isFinite);
  if (!known.length) return null;
  const { name, value: neutral } = neutralOf(measure);
  const [low, high] = [Math.min(neutral, ...known) - neutral, Math.max(neutral, ...known) - neutral];
  if (high === low) return null;
  const texts = [formatMeasure(low + neutral), low < 0 && high > 0 ? `${name} ${formatMeasure(neutral)}` : "", formatMeasure(high + neutral)];
  return { scale: new Scale(palette, Math.max(-low, high)), low, high, texts, neutral };
}

