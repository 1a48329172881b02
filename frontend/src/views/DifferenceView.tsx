// Two runs: how much each head differs, the heads ranked by it, and the maps of one head in both and of their difference.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { largestSize, Scale } from "../colours";
import { compose, type Picture } from "../compose";
import type { ViewProps } from "../context";
import { WeightScale } from "../fade";
import type { Figure } from "../figure";
import { poolingNote } from "../heatmap";
import { labelText } from "../labels";
import { formatWeight } from "../numbers";
import type { Palette } from "../palette";
import type { Source } from "../source";
import type { State, Update } from "../state";
import { type Bar, ColourBar, drawBar } from "./ColourBar";
import { difference, type Distances, haveSameLayout, joinTexts, useDistances } from "./differences";
import { useHeight } from "./fit";
import { headName, nextPlace } from "./headKeys";
import { MapCanvas } from "./MapCanvas";
import { type Cell, drawMap, type MapSize, sizeOf, type WeightMap } from "./maps";
import { LargestDifferences, StrongestWeights } from "./tables";

const LABEL = 24;
const GAP = 16;
const BAR = 46;
const RANKED = 8;
const MIN_SIDE = 200; // of a map beside the grid
const LEFT_ONLY = 8; // left margin of maps that share the texts of the first one's rows

export function DifferenceView(props: ViewProps) {
  const { sources, state, update, palette, width, setFigure } = props;
  const [first, second] = sources;
  const section = useRef<HTMLElement>(null);
  const height = useHeight(section, 420, [width]);
  const comparable = haveSameLayout(first, second, state.units);
  const head = state.heads[0];
  const distances = useDistances(sources, state, comparable);
  const ranked = useMemo(() => distances.values.map((_, index) => index).sort((a, b) => (distances.values[b] || 0) - (distances.values[a] || 0) || a - b), [distances, distances.complete]);
  const pictures = useMemo(() => sources.map((source) => oneHead(source, state, head)), [sources, props.picture]);
  const names = [first.run.name, second.run.name];
  const maps = useMemo(() => mapsOf(pictures, names, comparable), [pictures]);
  const shared = comparable && sameTokens(pictures);
  const gridWidth = LABEL + first.heads * cellWidth(first.heads);
  const { sizes, beside } = useMemo(() => layoutMaps(maps, width, height, comparable ? gridWidth + 28 : 0, shared), [maps, width, height, shared]);
  const bars = useMemo(() => barsOf(maps, palette, comparable), [maps, palette]);
  useEffect(() => {
    if (!comparable || !distances.complete || state.compared !== "most") return;
    const best = ranked[0];
    if (best !== state.layer * first.heads + head || state.heads.length > 1) update({ layer: Math.trunc(best / first.heads), heads: [best % first.heads] });
  }, [distances.complete, ranked, state.compared]);
  useLayoutEffect(() => setFigure(figureOf(maps, sizes, bars, palette)));
  const choose = (index: number) => update({ layer: Math.trunc(index / first.heads), heads: [index % first.heads], compared: "chosen" });
  const index = state.layer * first.heads + head;
  const rank = ranked.indexOf(index);
  return (
    <section class="difference-view" aria-label="Difference view" ref={section}>
      {!sameTokens(pictures) && (
        <dl class="inputs">
          {sources.map(({ run }, i) => [<dt key={i}>{run.name}</dt>, <dd key={`text ${i}`}><bdi>{run.words.join(" ")}</bdi></dd>])}
        </dl>
      )}
      {!comparable && (
        <p class="note">
          The runs differ in tokens or heads: their attention is shown side by side, without a difference.
          {state.units === "tokens" && haveSameLayout(first, second, "words") && <> <button type="button" data-choice="Compare words" onClick={() => update({ units: "words", token: -1 })}>Compare words</button></>}
        </p>
      )}
      <div class={`compared ${beside ? "beside" : ""}`}>
        {comparable && (
          <div class="heads" style={{ width: beside ? `${gridWidth}px` : undefined }}>
            <p class="note">Total variation distance of each head, mean over rows: 0 identical, 1 disjoint.{!distances.complete && " Comparing …"}</p>
            <Grid distances={distances} source={first} selected={index} choose={choose} update={update} palette={palette} />
            <Ranking ranked={ranked} distances={distances} source={first} selected={index} choose={choose} />
          </div>
        )}
        <div class="head-maps">
          <h2>
            Head {headName(index, first)}
            {comparable && distances.complete && <span class="labelled"> differs by {formatWeight(distances.values[index])}, rank {rank + 1} of {ranked.length}</span>}
          </h2>
          {!comparable && <HeadChoice state={state} update={update} source={first} />}
          <Maps maps={maps} sizes={sizes} bars={bars} palette={palette} name={headName(index, first)} linked={comparable} names={names} steps={pictures.map(({ step }) => step)} />
          <p class="note">{poolingNote(pictures[0].rows.length, pictures[0].columns.length, Math.floor(sizes[0].side))}</p>
          {comparable ? <LargestDifferences pictures={pictures} names={names} /> : <StrongestWeights pictures={pictures} names={names} />}
        </div>
      </div>
    </section>
  );
}

function cellWidth(heads: number): number {
  return heads > 12 ? 24 : 29;
}

function mapsOf(pictures: Picture[], names: string[], comparable: boolean): WeightMap[] {
  const texts = (picture: Picture, units: number[]) => units.map((unit) => picture.units[unit].text);
  const maps = pictures.map((picture, index) => ({ title: names[index], rows: texts(picture, picture.rows), columns: texts(picture, picture.columns), weights: picture.series[0].weights }));
  if (!comparable) return maps;
  const [a, b] = maps;
  return [...maps, { title: `${b.title} − ${a.title}`, rows: a.rows.map((text, row) => joinTexts(text, b.rows[row])), columns: a.columns.map((text, column) => joinTexts(text, b.columns[column])), weights: difference(pictures) }];
}

/** The sizes of the maps: in a row beside the grid of heads if there is space, else in a row, else below one another. */
function layoutMaps(maps: WeightMap[], width: number, height: number, grid: number, shared: boolean): { sizes: MapSize[]; beside: boolean } {
  const inRow = (space: number) => {
    const size = sizeOf(maps, 2000, Math.min(height - 40, 900));
    const margins = (size.left + (maps.length - 1) * (shared ? LEFT_ONLY : size.left)) + maps.length * (size.width - size.left - size.side) + (maps.length - 1) * GAP;
    const side = Math.min(size.side, 420, Math.floor((space - margins) / maps.length));
    const fitted = sizeOf(maps, size.left + side + (size.width - size.left - size.side), 2000);
    return { side, sizes: maps.map((_, index) => (index && shared ? { ...fitted, left: LEFT_ONLY, width: fitted.width - fitted.left + LEFT_ONLY } : fitted)) };
  };
  const candidates: [number, boolean][] = [[width - grid, true], [width, false]];
  for (const [space, beside] of candidates) {
    const { side, sizes } = inRow(space);
    if (side >= (beside ? MIN_SIDE : 150)) return { sizes, beside: beside && grid > 0 };
  }
  const size = sizeOf(maps, width, 560);
  return { sizes: maps.map(() => size), beside: false };
}

/** The colours of both runs are one scale; the difference has its own, the same on both sides of 0. */
function barsOf(maps: WeightMap[], palette: Palette, comparable: boolean): Bar[] {
  const scale = new Scale(palette, largestSize(maps.slice(0, 2).map(({ weights }) => weights)));
  const weights: Bar = { scale, low: 0, high: scale.max || 1, texts: ["0", "", `${formatWeight(scale.max)} weight`] };
  if (!comparable) return [weights, weights];
  const changes = new Scale(palette, largestSize([maps[2].weights]));
  const end = formatWeight(changes.max);
  return [weights, weights, { scale: changes, low: -(changes.max || 1), high: changes.max || 1, texts: [`−${end}`, "0", `+${end}`] }];
}

function figureOf(maps: WeightMap[], sizes: MapSize[], bars: Bar[], palette: Palette): Figure {
  const starts = sizes.map((_, index) => sizes.slice(0, index).reduce((sum, size) => sum + size.width + GAP, 0));
  const height = Math.max(...sizes.map((size) => size.height));
  return {
    width: starts[starts.length - 1] + sizes[sizes.length - 1].width,
    height: height + BAR - 12,
    draw: (pen) =>
      maps.forEach((map, index) => {
        drawMap(pen, map, new WeightScale(bars[index].scale), palette, sizes[index], starts[index]);
        drawBar(pen, bars[index], palette, starts[index] + sizes[index].left, sizes[index].height + 6, sizes[index].side);
      }),
  };
}

interface MapsProps {
  maps: WeightMap[];
  sizes: MapSize[];
  bars: Bar[];
  palette: Palette;
  name: string;
  linked: boolean;
  names: string[];
  steps: number[]; // in which the weights of the runs are stored, 0 if they are exact
}

/** Special tokens are never faded here: what changed is often how much they are attended to. */
function Maps({ maps, sizes, bars, palette, name, linked, names, steps }: MapsProps) {
  const colours = useMemo(() => bars.map(({ scale }) => new WeightScale(scale)), [bars]);
  const [pointed, setPointed] = useState<{ map: number; cell: Cell } | null>(null);
  const valueOf = (map: number, { row, column }: Cell) => formatWeight(maps[map].weights[row * maps[map].columns.length + column], steps[map]);
  const describe = (map: number) => (cell: Cell) => {
    const { rows, columns } = maps[linked ? maps.length - 1 : map];
    if (cell.column < 0) return [`from ${rows[cell.row]}`];
    if (cell.row < 0) return [`to ${columns[cell.column]}`];
    const heading = `${rows[cell.row]} → ${columns[cell.column]}`;
    if (!linked) return [heading, valueOf(map, cell)];
    const change = maps[2].weights[cell.row * columns.length + cell.column];
    return [heading, `difference ${change > 0 ? "+" : ""}${formatWeight(change)}`, ...names.map((each, index) => `${each} ${valueOf(index, cell)}`)];
  };
  return (
    <div class="patterns">
      {maps.map((map, index) => (
        <div key={index}>
          <MapCanvas
            map={map}
            size={sizes[index]}
            colours={colours[index]}
            palette={palette}
            label={`Attention of head ${name}, ${map.title}`}
            name={String(index)}
            cell={pointed && (linked || pointed.map === index) ? pointed.cell : null}
            point={(cell) => setPointed(cell && { map: index, cell })}
            describe={pointed?.map === index ? describe(index) : null}
          />
          <div class="map-bar" style={{ marginLeft: `${sizes[index].left}px`, width: `${sizes[index].side}px` }}><ColourBar bar={bars[index]} name={map.title} /></div>
        </div>
      ))}
    </div>
  );
}

interface GridProps {
  distances: Distances;
  source: Source;
  selected: number;
  choose: (index: number) => void;
  palette: Palette;
  update: Update;
}

function Grid({ distances, source, selected, choose, palette, update }: GridProps) {
  const { layers, heads } = source;
  const grid = useRef<HTMLDivElement>(null);
  const scale = new Scale(palette, Math.max(0.001, ...distances.values.filter(Number.isFinite)));
  const onKeyDown = (event: KeyboardEvent) => {
    const index = Number((event.target as HTMLElement).dataset.index);
    if (event.key === "Enter") {
      event.preventDefault();
      return update({ view: "head", layer: Math.trunc(index / heads), heads: [index % heads], compared: "chosen" });
    }
    const next = nextPlace(event, index, heads, layers * heads);
    if (next === null) return undefined;
    event.preventDefault();
    grid.current!.querySelector<HTMLElement>(`[data-index="${next}"]`)?.focus();
    return choose(next);
  };
  return (
    <div class="grid" ref={grid} role="group" aria-label="Heads" onKeyDown={onKeyDown} style={{ gridTemplateColumns: `${LABEL - 2}px repeat(${heads}, minmax(0, 1fr))`, maxWidth: `${LABEL + heads * 34}px` }}>
      <span />
      {Array.from({ length: heads }, (_, head) => <span class="muted" key={head}>{head + 1}</span>)}
      {Array.from({ length: layers }, (_, layer) => [
        <span class="muted" key={layer}>{layer + 1}</span>,
        ...Array.from({ length: heads }, (_, head) => {
          const index = layer * heads + head;
          const value = distances.values[index];
          const known = value === value;
          const name = headName(index, source);
          return (
            <button
              type="button"
              key={name}
              data-head={name}
              data-index={index}
              tabIndex={index === selected ? 0 : -1}
              aria-pressed={index === selected}
              aria-label={`Head ${name}: ${known ? formatWeight(value) : "not compared yet"}`}
              title={[`${name}: ${known ? formatWeight(value) : "not compared yet"}`, ...source.labels(layer, head).map(labelText)].join("\n")}
              style={known ? { background: scale.css(value), color: scale.textColour(value) } : {}}
              data-value={known && heads <= 12 ? value.toFixed(2).replace(/^0/, "") : ""}
              onClick={() => choose(index)}
            />
          );
        }),
      ])}
    </div>
  );
}

/** The heads that differ most. */
function Ranking({ ranked, distances, source, selected, choose }: { ranked: number[] } & Pick<GridProps, "distances" | "source" | "selected" | "choose">) {
  if (!distances.complete) return null;
  return (
    <table class="ranking">
      <caption>Most changed heads</caption>
      <tbody>
        {ranked.slice(0, RANKED).map((index, rank) => (
          <tr key={index}>
            <td>{rank + 1}</td>
            <td><button type="button" data-ranked={rank + 1} aria-pressed={index === selected} onClick={() => choose(index)}>{headName(index, source)}</button></td>
            <td>{formatWeight(distances.values[index])}</td>
            <td class="word">{source.labels(Math.trunc(index / source.heads), index % source.heads).slice(0, 1).map(labelText)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Layer and head as menus, where there is no grid to choose from. */
function HeadChoice({ state, update, source }: { state: State; update: Update; source: Source }) {
  const options = (count: number) => Array.from({ length: count }, (_, i) => <option key={i} value={i}>{i + 1}</option>);
  return (
    <p class="row">
      <label>Layer <select data-choice="Compared layer" value={state.layer} onChange={(event) => update({ layer: Number(event.currentTarget.value), compared: "chosen" })}>{options(source.layers)}</select></label>
      <label>Head <select data-choice="Compared head" value={state.heads[0]} onChange={(event) => update({ heads: [Number(event.currentTarget.value)], compared: "chosen" })}>{options(source.heads)}</select></label>
    </p>
  );
}

function sameTokens([a, b]: Picture[]): boolean {
  return a.units.length === b.units.length && a.units.every((unit, index) => unit.text === b.units[index].text);
}

function oneHead(source: Source, state: State, head: number): Picture {
  const layer = Math.min(state.layer, source.layers - 1);
  const part = source.run.is_pair ? state.part : "all";
  const quantity = Math.min(state.quantity, source.quantities.length - 1);
  return compose({ ...state, quantity, layer, part, heads: [Math.min(head, source.heads - 1)], across: "one", fusion: "each" }, source);
}
