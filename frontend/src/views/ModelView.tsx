// Every layer and head as a thumbnail of its map; one of them enlarged beside the others.
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { Scale } from "../colours";
import { laidOut, shaped } from "../compose";
import type { ViewProps } from "../context";
import { paint } from "../figure";
import { heatmap } from "../heatmap";
import { weight } from "../numbers";
import { Labels } from "./Details";
import { drawPanel, type Panel, sizeOf } from "./panels";

const LABEL = 30;
const LARGE = 370; // pixels

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
  const chosen = state.heads.length === 1 ? state.heads[0] : -1;
  const figure = {
    ...size,
    draw: (pen: Parameters<Parameters<typeof setFigure>[0]["draw"]>[0]) => {
      for (let head = 0; head < heads; head++) pen.text(LABEL + (head + 0.5) * cell, 10, String(head + 1), palette.soft, 12, "middle");
      for (let layer = 0; layer < layers; layer++) {
        pen.text(LABEL - 10, 20 + (layer + 0.5) * cell, String(layer + 1), palette.soft, 12, "end");
        for (let head = 0; head < heads; head++) {
          const [x, y] = [LABEL + head * cell + 2, 20 + layer * cell + 2];
          pen.image(thumbnails[layer * heads + head], x, y, cell - 4, cell - 4);
          const here = layer === state.layer && head === chosen;
          pen.rect(x - 0.5, y - 0.5, cell - 3, cell - 3, here ? palette.ink : palette.line, true);
          if (here) pen.rect(x - 1.5, y - 1.5, cell - 1, cell - 1, palette.ink, true);
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
      const found = source.labels(layer, head);
      buttons.push(
        <button
          type="button"
          key={`${layer}-${head}`}
          data-head={`${layer + 1}-${head + 1}`}
          aria-label={[`Head ${layer + 1}-${head + 1}`, ...found.map(({ label }) => label)].join(", ")}
          aria-pressed={layer === state.layer && head === chosen}
          title={[`${layer + 1}-${head + 1}`, ...found.map(({ label, evidence }) => `${label} (${evidence})`)].join("\n")}
          tabIndex={layer === state.layer && head === Math.max(0, chosen) ? 0 : -1}
          style={{ left: `${LABEL + head * cell}px`, top: `${20 + layer * cell}px`, width: `${cell}px`, height: `${cell}px` }}
          onClick={() => update({ layer, heads: [head], across: "one", fusion: "each" })}
        >
          {found.length > 0 && (cell >= 64 ? <span class="tag">{found[0].label}{found.length > 1 ? ` +${found.length - 1}` : ""}</span> : <i class="dot" />)}
        </button>,
      );
    }
  }
  return (
    <section class="model-view" aria-label="Model view">
      <p class="note">Layers down, heads across; in each map rows attend and columns are attended to, and the strongest colour is that head's own largest weight. Choose one to enlarge it.</p>
      <div class="grid" style={{ width: `${size.width}px`, height: `${size.height}px` }} onKeyDown={(event) => walk(event, heads)} role="group" aria-label="Heads">
        <canvas ref={canvas} style={{ width: `${size.width}px`, height: `${size.height}px` }} aria-hidden="true" />
        {buttons}
      </div>
    </section>
  );
}

function walk(event: KeyboardEvent, heads: number): void {
  const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: heads, ArrowUp: -heads }[event.key];
  if (by === undefined) return;
  const buttons = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>("button")];
  buttons[buttons.indexOf(event.target as HTMLElement) + by]?.focus();
  event.preventDefault();
}

/** Each head's map with the filters of the state, strongest colour for the strongest weight of that head. */
function thumbnailsOf({ source, state, palette }: ViewProps, side: number): HTMLCanvasElement[] {
  const pictures: HTMLCanvasElement[] = [];
  const sharp = Math.min(512, Math.round(side * Math.min(2, window.devicePixelRatio || 1)));
  const layout = laidOut(state, source);
  const maps = source.quantities[state.quantity];
  for (let layer = 0; layer < source.layers; layer++) {
    for (let head = 0; head < source.heads; head++) {
      const weights = shaped(maps.head(layer, head), layout, state);
      pictures.push(heatmap(weights, layout.rows.length, layout.columns.length, sharp, new Scale(palette, largest(weights))));
    }
  }
  return pictures;
}

function largest(weights: Float32Array): number {
  let reach = 0;
  for (let i = 0; i < weights.length; i++) if (Math.abs(weights[i]) > reach) reach = Math.abs(weights[i]);
  return reach;
}

/** One head's map, large, with its tokens where there is room, and the way into the other views. */
export function Enlarged({ picture, palette, state, update, source, width }: ViewProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const one = picture.series[0];
  const reach = one ? largest(one.weights) : 0;
  const texts = (units: number[]) => units.map((unit) => picture.units[unit].text);
  const panel: Panel = { name: "", rows: texts(picture.rows), columns: texts(picture.columns), weights: one?.weights ?? new Float32Array(), reach };
  const side = sizeOf([panel], Math.min(LARGE, width));
  useLayoutEffect(() => {
    if (canvas.current && one) paint(canvas.current, { ...side, draw: (pen) => drawPanel(pen, panel, palette, side, 0) });
  });
  if (state.heads.length !== 1 || !one) return <p class="note">Choose a head to see its map large.</p>;
  const labels = source.labels(state.layer, state.heads[0]);
  return (
    <div class="enlarged">
      <h2>Head {one.name}</h2>
      <canvas ref={canvas} role="img" aria-label={`Map of head ${one.name}`} style={{ width: `${side.width}px`, height: `${side.height}px` }} />
      <p class="note">
        0 <i class="ramp" /> {weight(reach)}
      </p>
      <p class="row">
        <button type="button" onClick={() => update({ view: "head" })}>Lines</button>
        <button type="button" onClick={() => update({ view: "matrix" })}>Numbers</button>
      </p>
      <Labels labels={labels} />
    </div>
  );
}
