// All layers and heads as thumbnails of their attention; one of them enlarged at the side.
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { largestSize, Scale } from "../colours";
import { layoutOf, shapeWeights } from "../compose";
import type { ViewProps } from "../context";
import { paint } from "../figure";
import { heatmap } from "../heatmap";
import { formatWeight } from "../numbers";
import { Labels } from "./Details";
import { drawPanel, type Panel, sizeOf } from "./panels";

const LABEL = 30;
const ENLARGED_WIDTH = 370;

export function ModelView(props: ViewProps) {
  const { source, state, update, palette, width, setFigure } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const { layers, heads } = source;
  const cell = Math.max(24, Math.min(width > 1500 ? 160 : 112, Math.floor((width - LABEL) / heads)));
  const size = { width: LABEL + cell * heads, height: 20 + cell * layers };
  const filters = [state.quantity, state.units, state.special, state.part, state.keep, state.threshold, state.top];
  const thumbnails = useMemo(
    () => thumbnailsOf(props, cell - 4),
    [source, palette, cell, ...filters],
  );
  const selection = state.heads.length === 1 ? state.heads[0] : -1;
  const figure = {
    ...size,
    draw: (pen: Parameters<Parameters<typeof setFigure>[0]["draw"]>[0]) => {
      for (let head = 0; head < heads; head++) pen.text(LABEL + (head + 0.5) * cell, 10, String(head + 1), palette.muted, 12, "middle");
      for (let layer = 0; layer < layers; layer++) {
        pen.text(LABEL - 10, 20 + (layer + 0.5) * cell, String(layer + 1), palette.muted, 12, "end");
        for (let head = 0; head < heads; head++) {
          const [x, y] = [LABEL + head * cell + 2, 20 + layer * cell + 2];
          pen.image(thumbnails[layer * heads + head], x, y, cell - 4, cell - 4);
          const isSelected = layer === state.layer && head === selection;
          pen.rect(x - 0.5, y - 0.5, cell - 3, cell - 3, isSelected ? palette.foreground : palette.grid, true);
          if (isSelected) pen.rect(x - 1.5, y - 1.5, cell - 1, cell - 1, palette.foreground, true);
        }
      }
    },
  };
  useLayoutEffect(() => {
    if (canvas.current) paint(canvas.current, figure);
    setFigure(figure);
  });
  const buttons = [];
  for (let layer = 0; layer < layers; layer++) {
    for (let head = 0; head < heads; head++) {
      const labels = source.labels(layer, head);
      buttons.push(
        <button
          type="button"
          key={`${layer}-${head}`}
          data-head={`${layer + 1}-${head + 1}`}
          aria-label={[`Head ${layer + 1}-${head + 1}`, ...labels.map(({ label }) => label)].join(", ")}
          aria-pressed={layer === state.layer && head === selection}
          title={[`${layer + 1}-${head + 1}`, ...labels.map(({ label, evidence }) => `${label} (${evidence})`)].join("\n")}
          tabIndex={layer === state.layer && head === Math.max(0, selection) ? 0 : -1}
          style={{ left: `${LABEL + head * cell}px`, top: `${20 + layer * cell}px`, width: `${cell}px`, height: `${cell}px` }}
          onClick={() => update({ layer, heads: [head], across: "one", fusion: "each" })}
        >
          {labels.length > 0 && (cell >= 64 ? <span class="tag">{labels[0].label}{labels.length > 1 ? ` +${labels.length - 1}` : ""}</span> : <i class="dot" />)}
        </button>,
      );
    }
  }
  return (
    <section class="model-view" aria-label="Model view">
      <p class="note">Layers down, heads across. Rows attend to columns; the strongest colour is the largest weight of the head. Select a head to enlarge it.</p>
      <div class="grid" style={{ width: `${size.width}px`, height: `${size.height}px` }} onKeyDown={(event) => moveFocus(event, heads)} role="group" aria-label="Heads">
        <canvas ref={canvas} style={{ width: `${size.width}px`, height: `${size.height}px` }} aria-hidden="true" />
        {buttons}
      </div>
    </section>
  );
}

function moveFocus(event: KeyboardEvent, heads: number): void {
  const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: heads, ArrowUp: -heads }[event.key];
  if (by === undefined) return;
  const buttons = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>("button")];
  buttons[buttons.indexOf(event.target as HTMLElement) + by]?.focus();
  event.preventDefault();
}

/** The attention of each head with the current filters, scaled to the head's largest weight. */
function thumbnailsOf({ source, state, palette }: ViewProps, side: number): HTMLCanvasElement[] {
  const thumbnails: HTMLCanvasElement[] = [];
  const resolution = Math.min(512, Math.round(side * Math.min(2, window.devicePixelRatio || 1)));
  const layout = layoutOf(state, source);
  const headWeights = source.quantities[state.quantity];
  for (let layer = 0; layer < source.layers; layer++) {
    for (let head = 0; head < source.heads; head++) {
      const weights = shapeWeights(headWeights.head(layer, head), layout, state);
      thumbnails.push(heatmap(weights, layout.rows.length, layout.columns.length, resolution, new Scale(palette, largestSize([weights]))));
    }
  }
  return thumbnails;
}

/** The attention of one head, enlarged, with its tokens if there is space, and links to the other views. */
export function Enlarged({ picture, palette, state, update, source, width }: ViewProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const series = picture.series[0];
  const max = series ? largestSize([series.weights]) : 0;
  const texts = (units: number[]) => units.map((unit) => picture.units[unit].text);
  const panel: Panel = { name: "", rows: texts(picture.rows), columns: texts(picture.columns), weights: series?.weights ?? new Float32Array(), max };
  const side = sizeOf([panel], Math.min(ENLARGED_WIDTH, width));
  useLayoutEffect(() => {
    if (canvas.current && series) paint(canvas.current, { ...side, draw: (pen) => drawPanel(pen, panel, palette, side, 0) });
  });
  if (state.heads.length !== 1 || !series) return <p class="note">Select a head to enlarge it.</p>;
  const labels = source.labels(state.layer, state.heads[0]);
  return (
    <div class="enlarged">
      <h2>Head {series.name}</h2>
      <canvas ref={canvas} role="img" aria-label={`Attention of head ${series.name}`} style={{ width: `${side.width}px`, height: `${side.height}px` }} />
      <p class="note">
        0 <i class="ramp" /> {formatWeight(max)}
      </p>
      <p class="row">
        <button type="button" onClick={() => update({ view: "head" })}>Lines</button>
        <button type="button" onClick={() => update({ view: "matrix" })}>Numbers</button>
      </p>
      <Labels labels={labels} />
    </div>
  );
}
