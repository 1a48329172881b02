// The heads of the layer side by side: a small picture of each, its label and its number; a click shows one large.
import { useEffect, useRef } from "preact/hooks";
import { compose, layoutOf, shapeWeights } from "../compose";
import type { ViewProps } from "../context";
import { weightScale } from "../fade";
import { paint } from "../figure";
import { heatmap } from "../heatmap";
import { labelText } from "../labels";
import type { Pen } from "../pen";
import { drawLines, fadedUnits, lineCutoff } from "./lines";

const SIZE = { width: 84, height: 72 };
const MAX_LINE_TOKENS = 40; // of longer inputs a map is drawn
const MAX_LINES = 160;

export function SmallMultiples(props: ViewProps) {
  const { source, state, update } = props;
  const heads = Array.from({ length: source.heads }, (_, head) => head);
  const alone = state.heads.length === 1 ? state.heads[0] : -1;
  return (
    <nav class="multiples" aria-label={`Heads of layer ${source.layerNumber(state.layer)}`}>
      <h2>Layer {source.layerNumber(state.layer)}</h2>
      <div class="heads" role="group" aria-label="Small pictures of the heads" onKeyDown={move}>
        {heads.map((head) => {
          const labels = source.labels(state.layer, head);
          const name = source.nameOf(state.layer, head);
          return (
            <button
              type="button"
              key={head}
              data-multiple={source.headNumber(head)}
              aria-pressed={state.heads.includes(head)}
              aria-label={`Show head ${name} ${labels.map(labelText).join(", ")}`.trim()}
              title={[`Head ${name}`, ...labels.map((label) => `${labelText(label)} (${label.evidence})`)].join("\n")}
              tabIndex={head === Math.max(0, alone) ? 0 : -1}
              onClick={() => update({ heads: [head], fusion: "each", across: "one" })}
            >
              <Thumbnail {...props} head={head} />
              <b>{name}</b>{" "}
              {labels.length > 0 && <span class="label">{labelText(labels[0])}</span>}
            </button>
          );
        })}
      </div>
    </nav>
  );
}

/** Arrow keys move through the pictures. */
function move(event: KeyboardEvent): void {
  const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (by === undefined) return;
  const buttons = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>("button")];
  const next = buttons[buttons.indexOf(event.target as HTMLElement) + by];
  next?.focus();
  event.preventDefault();
}

function Thumbnail(props: ViewProps & { head: number }) {
  const { source, state, palette, head } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const { quantity, layer, units, special, part, keep, mass, threshold, top } = state;
  // One after the other, after the large picture.
  useEffect(() => {
    const timer = setTimeout(() => {
      if (!canvas.current || !source.quantities[quantity].ready([layer])) return;
      paint(canvas.current, { ...SIZE, draw: (pen) => drawThumbnail(pen, props) });
    }, (source.nTokens > MAX_LINE_TOKENS ? 160 : 30) + 12 * head);
    return () => clearTimeout(timer);
  }, [source, palette, head, quantity, layer, units, special, part, keep, mass, threshold, top]);
  return <canvas ref={canvas} width={SIZE.width} height={SIZE.height} style={{ width: `${SIZE.width}px`, height: `${SIZE.height}px` }} aria-hidden="true" />;
}

function drawThumbnail(pen: Pen, { source, state, palette, head }: ViewProps & { head: number }): void {
  if (source.nTokens > MAX_LINE_TOKENS) {
    const layout = layoutOf(state, source);
    const weights = shapeWeights(source.quantities[state.quantity].head(state.layer, head), layout, { ...state, keep: "all" });
    const side = SIZE.height - 4;
    pen.image(heatmap(weights, layout.rows.length, layout.columns.length, side, weightScale(palette, [weights], layout, state.special)), (SIZE.width - side) / 2, 2, side, side);
    return;
  }
  const picture = compose({ ...state, heads: [head], fusion: "each", across: "one" }, source);
  const count = Math.max(picture.rows.length, picture.columns.length, 1);
  const span = { first: 0, last: count };
  const step = (SIZE.height - 6) / count;
  const { threshold } = lineCutoff(picture, null, span, MAX_LINES);
  drawLines(pen, picture, { left: 6, right: SIZE.width - 6, top: 3, step }, { palette, selection: null, span, threshold, faded: fadedUnits(picture, state.special) });
}
