// An atlas of all heads on one screen: thumbnails of their attention, coloured and sorted by a measure, one of them enlarged.
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Scale } from "../colours";
import type { ViewProps } from "../context";
import { FADED_NOTE } from "../fade";
import { type Figure, paint } from "../figure";
import { poolingNote } from "../heatmap";
import { labelText } from "../labels";
import { formatScore } from "../numbers";
import type { Palette } from "../palette";
import type { HeadLabel } from "../payload";
import type { Pen } from "../pen";
import type { Source } from "../source";
import type { State } from "../state";
import { type Bar, ColourBar, drawBar } from "./ColourBar";
import { EnlargedHead } from "./EnlargedHead";
import { useHeight } from "./fit";
import { headName, nextPlace } from "./headKeys";
import { corpusMeasures, describeHead, formatMeasure, type Measure, neutralOf, ranking, THIS_TEXT } from "./measures";
import { MAX_THUMBNAIL_LINES, type Thumbnails, useThumbnails } from "./thumbnails";
import { Tip } from "./Tip";

const LEFT = 26;
const TOP = 18;
const CELL = { min: 20, max: 104, tag: 84, score: 38, name: 40, value: 30 };
const WIDE = 760; // with less width the enlarged head is below the atlas
const BAR_HEIGHT = 52;
const NOTE = 54; // height of the note below

export function ModelView(props: ViewProps) {
  const { source, state, update, palette, width, setFigure } = props;
  const { layers, heads } = source;
  const canvas = useRef<HTMLCanvasElement>(null);
  const grid = useRef<HTMLDivElement>(null);
  const [hovered, setHovered] = useState(-1);
  const wide = width >= WIDE;
  const height = useHeight(grid, 300, [width]) - NOTE;
  const cell = cellSize(layers, heads, wide ? Math.min(width * 0.56, width - 400) : width, wide ? height : Infinity);
  const corpus = useMemo(() => corpusMeasures(source.run.measures), [source]);
  const coloured = state.measure !== "none";
  const frame = coloured && state.cells !== "values" ? Math.max(2, Math.round(cell * 0.075)) : 0;
  const inner = cell - 3 - 2 * frame;
  const thumbnails = useThumbnails(props, inner, coloured);
  const measures = [...corpus, ...thumbnails.measures.measures];
  const measure = coloured ? measures.find((each) => keyOf(each) === state.measure) ?? corpus[0] ?? measures[0] : null;
  const ranked = useMemo(() => (measure ? ranking(measure) : []), [measure, thumbnails.made]);
  const slots = useMemo(() => slotsOf(state.order, ranked, layers, heads), [state.order, ranked, layers, heads]);
  const colours = useMemo(() => measure && coloursOf(measure, palette), [measure, palette, thumbnails.made]);
  const selected = state.layer * heads + state.heads[0];
  const size = { width: LEFT + cell * heads + 2, height: TOP + cell * layers + 2 };
  const atlas: Atlas = { source, layers, heads, cell, frame, slots, selected, thumbnails, measure, colours, order: state.order, kind: state.cells };
  const figure: Figure = { width: Math.max(size.width, 300), height: size.height + (measure ? BAR_HEIGHT : 0), draw: (pen) => drawFigure(pen, atlas, size.height, palette) };
  useLayoutEffect(() => {
    if (canvas.current) paint(canvas.current, { ...size, draw: (pen) => drawAtlas(pen, atlas, palette) });
    setFigure(figure);
  });
  const choose = (index: number) => update({ layer: Math.trunc(index / heads), heads: [index % heads], across: "one", fusion: "each" });
  const open = (index: number) => update({ view: "head", layer: Math.trunc(index / heads), heads: [index % heads], across: "one", fusion: "each" });
  const onKeyDown = (event: KeyboardEvent) => {
    const index = Number((event.target as HTMLElement).dataset.index);
    if (event.key === "Enter") {
      event.preventDefault();
      return open(index);
    }
    const slot = nextPlace(event, slots.indexOf(index), heads, slots.length);
    if (slot === null) return undefined;
    event.preventDefault();
    grid.current!.querySelector<HTMLElement>(`[data-index="${slots[slot]}"]`)?.focus();
    return choose(slots[slot]);
  };
  const lines = (index: number) => [
    `Head ${headName(index, source)}`,
    ...source.labels(Math.trunc(index / heads), index % heads).map(labelText),
    ...(measure ? describeHead(measure, index, ranked.indexOf(index)) : []),
  ];
  const hoveredSlot = slots.indexOf(hovered);
  return (
    <section class="model-view" aria-label="Model view">
      <div class={`atlas ${wide ? "wide" : ""}`}>
        <div class="overview" style={wide ? { width: `${size.width}px` } : {}}>
          <Settings state={state} update={update} measures={measures} measure={measure} />
          {measure && colours ? <ColourBar bar={colours} name={measure.name} /> : <p class="note bar-note">Colour: weight, from 0 to the head's largest.</p>}
          <div class="grid" ref={grid} style={{ width: `${size.width}px`, height: `${size.height}px` }} onKeyDown={onKeyDown} onPointerLeave={() => setHovered(-1)} role="group" aria-label="Heads">
            <canvas ref={canvas} style={{ width: `${size.width}px`, height: `${size.height}px` }} aria-hidden="true" />
            {slots.map((index, slot) => {
              const [layer, head] = [Math.trunc(index / heads), index % heads];
              const labels = source.labels(layer, head);
              return (
                <button
                  type="button"
                  key={index}
                  data-head={source.nameOf(layer, head)}
                  data-index={index}
                  aria-label={[`Head ${source.nameOf(layer, head)}`, ...labels.map(labelText), ...(measure ? [`${measure.name} ${formatMeasure(measure.values[index])}`] : [])].join(", ")}
                  aria-pressed={index === selected}
                  tabIndex={index === selected ? 0 : -1}
                  style={{ left: `${LEFT + (slot % heads) * cell}px`, top: `${TOP + Math.trunc(slot / heads) * cell}px`, width: `${cell}px`, height: `${cell}px` }}
                  onClick={() => choose(index)}
                  onDblClick={() => open(index)}
                  onPointerEnter={() => setHovered(index)}
                  onFocus={(event) => (event.currentTarget as HTMLElement).matches(":focus-visible") && setHovered(index)}
                  onBlur={() => setHovered(-1)}
                >
                  {labels.length > 0 && <Tag labels={labels} cell={cell} values={state.cells === "values"} />}
                </button>
              );
            })}
            {hovered >= 0 && <Tip x={LEFT + ((hoveredSlot % heads) + 0.5) * cell} y={TOP + (Math.trunc(hoveredSlot / heads) + 1) * cell} width={size.width} height={size.height} lines={lines(hovered)} />}
          </div>
        </div>
        <EnlargedHead {...props} measures={[...thumbnails.measures.measures, ...corpus]} shownMeasure={measure} height={wide ? height + (measure ? 96 : 78) : 640} space={wide ? width - size.width - 28 : width} />
      </div>
      <p class="note">{readingNote(props, inner, measure)}</p>
    </section>
  );
}

/** The label of a head in its cell: all of it, its number alone, or a dot, by the space there is. */
function Tag({ labels, cell, values }: { labels: HeadLabel[]; cell: number; values: boolean }) {
  const [first] = labels;
  if (!values && cell >= CELL.tag) return <span class="tag">{labelText(first)}{labels.length > 1 ? ` +${labels.length - 1}` : ""}</span>;
  return !values && cell >= CELL.score && first.score !== null ? <span class="tag score">{formatScore(first.score)}</span> : <i class="dot" />;
}

function keyOf({ name, source }: Measure): string {
  return source === THIS_TEXT ? name : `${name} · ${source}`;
}

/** The largest cell with which all heads fit. */
function cellSize(layers: number, heads: number, width: number, height: number): number {
  const fitting = Math.min((width - LEFT - 2) / heads, (height - TOP - 2) / layers);
  return Math.floor(Math.max(CELL.min, Math.min(CELL.max, fitting)));
}

function Settings({ state, update, measures, measure }: Pick<ViewProps, "state" | "update"> & { measures: Measure[]; measure: Measure | null }) {
  const sources = [...new Set(measures.map(({ source }) => source))];
  return (
    <div class="row settings">
      <label class="choice">
        <span>Colour by</span>
        <select data-choice="Colour by" value={measure ? keyOf(measure) : "none"} onChange={(event) => update({ measure: event.currentTarget.value, ...(event.currentTarget.value === "none" ? { order: "model" as const } : {}) })}>
          {sources.map((source) => (
            <optgroup label={source} key={source}>
              {measures.filter((each) => each.source === source).map((each) => <option key={keyOf(each)} value={keyOf(each)}>{each.name}</option>)}
            </optgroup>
          ))}
          <option value="none">no measure</option>
        </select>
      </label>
      <label class="choice">
        <span>Order of heads</span>
        <select data-choice="Order of heads" value={state.order} disabled={!measure} onChange={(event) => update({ order: event.currentTarget.value as State["order"] })}>
          <option value="model">as in the model</option>
          <option value="layers">sorted in layers</option>
          <option value="all">sorted over all</option>
        </select>
      </label>
      <label class="choice">
        <span>Cells</span>
        <select data-choice="Cells" value={state.cells} onChange={(event) => update({ cells: event.currentTarget.value as State["cells"] })}>
          <option value="maps">maps</option>
          <option value="lines">lines</option>
          <option value="values">values</option>
        </select>
      </label>
    </div>
  );
}

/** The head in each place of the grid, row by row. */
function slotsOf(order: State["order"], ranked: number[], layers: number, heads: number): number[] {
  const every = Array.from({ length: layers * heads }, (_, index) => index);
  if (order === "model" || !ranked.length) return every;
  if (order === "all") return ranked;
  return every.filter((index) => index % heads === 0).flatMap((start) => ranked.filter((index) => index >= start && index < start + heads));
}

/** Colours that are faint at the neutral value. */
function coloursOf(measure: Measure, palette: Palette): Bar & { neutral: number } {
  const { name, value } = neutralOf(measure);
  const finite = [...measure.values.filter(Number.isFinite), value];
  const [low, high] = [Math.min(...finite), Math.max(...finite)];
  const scale = new Scale(palette, Math.max(high - value, value - low) || 1);
  const inside = value > low && value < high;
  const texts = [`${formatMeasure(low)}${value === low ? ` ${name}` : ""}`, inside ? `${name} ${formatMeasure(value)}` : "", `${formatMeasure(high)}${value === high && high > low ? ` ${name}` : ""}`];
  return { scale, low: low - value, high: high > low ? high - value : 1, texts, neutral: value };
}

interface Atlas {
  source: Source;
  layers: number;
  heads: number;
  cell: number;
  frame: number;
  slots: number[];
  selected: number;
  thumbnails: Thumbnails;
  measure: Measure | null;
  colours: (Bar & { neutral: number }) | null;
  order: State["order"];
  kind: State["cells"];
}

function drawAtlas(pen: Pen, atlas: Atlas, palette: Palette): void {
  const { source, layers, heads, cell, slots, selected, order } = atlas;
  const every = cell < 22 ? 2 : 1;
  for (let head = 0; head < heads; head += every) pen.text(LEFT + (head + 0.5) * cell, 9, String(source.headNumber(head)), palette.muted, 11, "middle");
  for (let layer = 0; layer < layers; layer += every) pen.text(LEFT - 7, TOP + (layer + 0.5) * cell, order === "all" ? String(layer * heads + 1) : String(source.layerNumber(layer)), palette.muted, 11, "end");
  slots.forEach((index, slot) => drawCell(pen, atlas, palette, index, LEFT + (slot % heads) * cell + 1.5, TOP + Math.trunc(slot / heads) * cell + 1.5));
  const slot = slots.indexOf(selected);
  if (slot < 0) return;
  const [x, y] = [LEFT + (slot % heads) * cell, TOP + Math.trunc(slot / heads) * cell];
  for (const inset of [0, 1]) pen.rect(x + inset, y + inset, cell - 2 * inset, cell - 2 * inset, palette.foreground, true);
}

function drawCell(pen: Pen, { source, cell, frame, thumbnails, measure, colours, order, kind }: Atlas, palette: Palette, index: number, x: number, y: number): void {
  const side = cell - 3;
  const value = measure?.values[index] ?? NaN;
  const known = colours && value === value;
  if (kind === "values") {
    pen.rect(x, y, side, side, known ? colours.scale.css(value - colours.neutral) : palette.background);
    if (!known) pen.rect(x, y, side, side, palette.grid, true);
    if (cell < CELL.value) return;
    const colour = known ? colours.scale.textColour(value - colours.neutral) : palette.muted;
    const text = known ? formatMeasure(value).replace(/^(-?)0\./, "$1.") : measure ? "–" : "";
    const named = order !== "model" && cell >= CELL.name;
    pen.text(x + side / 2, y + side * (named ? 0.66 : 0.5), text, colour, cell < 44 ? 10 : 12, "middle");
    if (named) pen.text(x + side / 2, y + side * 0.28, headName(index, source), colour, 10, "middle");
    return;
  }
  if (frame) pen.rect(x, y, side, side, known ? colours.scale.css(value - colours.neutral) : palette.grid);
  const [left, top, inner] = [x + frame, y + frame, side - 2 * frame];
  const image = thumbnails.images[index];
  pen.rect(left, top, inner, inner, palette.background);
  if (image) pen.image(image, left, top, inner, inner);
  if (!frame) pen.rect(x - 0.5, y - 0.5, side + 1, side + 1, palette.grid, true);
  if (order === "model" || cell < CELL.name) return;
  const name = headName(index, source);
  const font = cell < 56 ? 9 : 10;
  pen.rect(left, top, 0.58 * font * name.length + 2, font + 1, palette.background);
  pen.text(left + 1, top + font / 2 + 0.5, name, palette.foreground, font, "start");
}

function drawFigure(pen: Pen, atlas: Atlas, below: number, palette: Palette): void {
  drawAtlas(pen, atlas, palette);
  const { measure, colours } = atlas;
  if (!measure || !colours) return;
  const width = Math.min(320, Math.max(240, LEFT + atlas.cell * atlas.heads - LEFT));
  pen.text(LEFT, below + 10, `${measure.name}, ${measure.unit || "no unit"} (${measure.source})`, palette.foreground, 11, "start");
  drawBar(pen, colours, palette, LEFT, below + 20, width);
}

function readingNote({ source, state, picture }: ViewProps, side: number, measure: Measure | null): string {
  const kind = {
    maps: "In a map rows attend to columns; the strongest colour is the head's largest weight.",
    lines: `Lines run from a token at the left to the token it attends to at the right; the strongest is the largest weight of the head${picture.rows.length * picture.columns.length > MAX_THUMBNAIL_LINES ? `, at most ${MAX_THUMBNAIL_LINES} per head are drawn` : ""}.`,
    values: "",
  }[state.cells];
  const places = { model: "Layers down, heads across.", layers: "Layers down, heads sorted by the measure.", all: "All heads sorted by the measure, row by row; numbers at the left are ranks." }[state.order];
  const frames = measure && state.cells !== "values" ? `Ink is weight, the frame's colour the measure (${[measure.unit, measure.source].filter(Boolean).join("; ")}).` : measure ? `Colour: ${[measure.unit, measure.source].filter(Boolean).join("; ")}.` : "";
  const fading = state.cells !== "values" && state.special === "fade" && picture.units.some((unit) => unit.special) ? FADED_NOTE : "";
  const pooling = state.cells === "maps" ? poolingNote(picture.rows.length, picture.columns.length, side) : "";
  const quantity = state.quantity > 0 ? `Measures of this text are of attention, not of ${source.run.quantities[state.quantity].name}.` : "";
  return [places, kind, fading, frames, pooling, quantity, "Arrow keys or h, j, k, l move; Enter opens the lines of a head."].filter(Boolean).join(" ");
}
