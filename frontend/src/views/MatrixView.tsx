// Attention as a table of numbers: sorted by any row or column, copied as text; only cells on screen are rendered.
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { largestSize, Scale } from "../colours";
import type { Picture, Series } from "../compose";
import type { ViewProps } from "../context";
import { heatmap } from "../heatmap";
import { formatCell, formatWeight } from "../numbers";
import { cellsOf } from "../trees";

const CELL = { width: 46, height: 24 };
const NAMES = 116;
const HEADER = 78;
const MARGIN = 3; // cells rendered beyond the screen

export function MatrixView(props: ViewProps) {
  const { picture, arcs, palette, state, update, selection, hover, setFigure } = props;
  const [shown, setShown] = useState(0);
  const [message, setMessage] = useState("");
  const scroller = useRef<HTMLDivElement>(null);
  const [viewport, setViewport] = useState({ top: 0, left: 0, height: 480, width: 800 });
  const series = picture.series[Math.min(shown, picture.series.length - 1)];
  const order = useMemo(() => sorted(picture, series, state.sortRow, state.sortColumn), [picture, series, state.sortRow, state.sortColumn]);
  const scale = useMemo(() => new Scale(palette, largestSize([series.weights])), [palette, series]);
  const outlines = useMemo(() => outlinesOf(props), [picture, arcs, palette]);
  const updateViewport = () => {
    const { scrollTop, scrollLeft, clientHeight, clientWidth } = scroller.current!;
    setViewport({ top: scrollTop, left: scrollLeft, height: clientHeight, width: clientWidth });
  };
  useLayoutEffect(updateViewport, [picture, props.width]);
  useLayoutEffect(() => setFigure(figureOf(props, series, order, scale)));
  const first = { row: Math.max(0, Math.floor((viewport.top - HEADER) / CELL.height) - MARGIN), column: Math.max(0, Math.floor((viewport.left - NAMES) / CELL.width) - MARGIN) };
  const last = {
    row: Math.min(order.rows.length, Math.ceil((viewport.top + viewport.height) / CELL.height) + MARGIN),
    column: Math.min(order.columns.length, Math.ceil((viewport.left + viewport.width) / CELL.width) + MARGIN),
  };
  const rows = order.rows.slice(first.row, last.row);
  const columns = order.columns.slice(first.column, last.column);
  const width = picture.columns.length;
  const copy = async () => {
    await copyText(asTable(picture, series, order));
    setMessage(`Copied ${order.rows.length} × ${order.columns.length} weights`);
  };
  return (
    <section class="matrix-view" aria-label="Matrix view">
      <p class="row">
        {picture.series.length > 1 && (
          <label>
            Head{" "}
            <select value={shown} onChange={(event) => setShown(Number(event.currentTarget.value))}>
              {picture.series.map(({ name }, index) => (
                <option value={index} key={name}>{name}</option>
              ))}
            </select>
          </label>
        )}
        {picture.series.length === 1 && <b>{series.name}</b>}
        <button type="button" onClick={copy}>Copy table</button>
        <button type="button" disabled={state.sortRow < 0 && state.sortColumn < 0} onClick={() => update({ sortRow: -1, sortColumn: -1 })}>Original order</button>
        <span class="note" role="status">{message || "Rows attend to columns. Click a token to sort by it."}</span>
      </p>
      <div class="scroller" ref={scroller} onScroll={updateViewport} tabIndex={0} role="grid" aria-rowcount={order.rows.length + 1} aria-colcount={order.columns.length + 1} aria-label={`Weights of ${series.name}`} onMouseLeave={() => hover(null)}>
        <div class="cells" style={{ width: `${NAMES + width * CELL.width}px`, height: `${HEADER + picture.rows.length * CELL.height}px` }}>
          <div class="header" role="row" style={{ height: `${HEADER}px` }}>
            {columns.map((column, index) => (
              <div
                role="columnheader"
                key={column}
                aria-sort={state.sortColumn === picture.columns[column] ? "descending" : "none"}
                style={{ left: `${NAMES + (first.column + index) * CELL.width}px`, width: `${CELL.width}px` }}
              >
                <button
                  type="button"
                  data-column={column}
                  title={`Sort rows by the attention to ${picture.units[picture.columns[column]].text}`}
                  class={selection?.side === "to" && selection.position === column ? "selected" : ""}
                  onClick={() => update({ sortColumn: toggle(state.sortColumn, picture.columns[column]) })}
                >
                  <bdi>{picture.units[picture.columns[column]].text}</bdi>
                </button>
              </div>
            ))}
          </div>
          {rows.map((row, index) => (
            <div class="line" role="row" key={row} style={{ top: `${HEADER + (first.row + index) * CELL.height}px` }}>
              <div role="rowheader" style={{ width: `${NAMES}px` }} aria-sort={state.sortRow === picture.rows[row] ? "descending" : "none"}>
                <button
                  type="button"
                  data-row={row}
                  title={`Sort columns by the attention of ${picture.units[picture.rows[row]].text}`}
                  class={selection?.side === "from" && selection.position === row ? "selected" : ""}
                  onMouseOver={() => hover({ side: "from", position: row })}
                  onClick={() => update({ sortRow: toggle(state.sortRow, picture.rows[row]) })}
                >
                  <bdi>{picture.units[picture.rows[row]].text}</bdi>
                </button>
              </div>
              {columns.map((column, position) => {
                const value = series.weights[row * width + column];
                const outline = outlines.get(`${row},${column}`);
                return (
                  <span
                    role="gridcell"
                    key={column}
                    data-cell={`${row},${column}`}
                    title={`${picture.units[picture.rows[row]].text} → ${picture.units[picture.columns[column]].text}: ${formatWeight(value)}${outline ? ` (${outline.names.join(", ")})` : ""}`}
                    class={outline ? "edge" : undefined}
                    style={{ left: `${NAMES + (first.column + position) * CELL.width}px`, width: `${CELL.width - 1}px`, background: scale.css(value), color: scale.textColour(value), ...(outline ? { outline: `2px ${outline.dashed ? "dashed" : "solid"} ${outline.colour}` } : {}) }}
                    onMouseOver={() => hover({ side: "from", position: row })}
                  >
                    {formatCell(value, scale.max)}
                  </span>
                );
              })}
            </div>
          ))}
        </div>
      </div>
    </section>
  );
}

interface Outline {
  colour: string;
  dashed: boolean;
  names: string[];
}

/** The cells of the arcs; where trees agree, with the outline of the first. */
function outlinesOf({ picture, arcs, palette }: ViewProps): Map<string, Outline> {
  const outlines = new Map<string, Outline>();
  for (const tree of arcs) {
    for (const cell of cellsOf(tree, picture)) {
      const existing = outlines.get(cell);
      outlines.set(cell, existing ? { ...existing, names: [...existing.names, tree.tree.name] } : { colour: tree.colour(palette), dashed: !tree.tree.directed, names: [tree.tree.name] });
    }
  }
  return outlines;
}

function toggle(now: number, token: number): number {
  return now === token ? -1 : token;
}

interface Order {
  rows: number[];
  columns: number[];
}

function sorted(picture: Picture, series: Series, sortRow: number, sortColumn: number): Order {
  const width = picture.columns.length;
  const rows = picture.rows.map((_, row) => row);
  const columns = picture.columns.map((_, column) => column);
  const [byRow, byColumn] = [picture.rows.indexOf(sortRow), picture.columns.indexOf(sortColumn)];
  const down = (a: number, b: number) => (b === b ? b : -Infinity) - (a === a ? a : -Infinity) || 0;
  if (byColumn >= 0) rows.sort((a, b) => down(series.weights[a * width + byColumn], series.weights[b * width + byColumn]) || a - b);
  if (byRow >= 0) columns.sort((a, b) => down(series.weights[byRow * width + a], series.weights[byRow * width + b]) || a - b);
  return { rows, columns };
}

/** Tab-separated text for spreadsheets. */
function asTable(picture: Picture, series: Series, order: Order): string {
  const name = (unit: number) => picture.units[unit].text.replace(/[\t\r\n]/g, " ");
  const head = ["", ...order.columns.map((column) => name(picture.columns[column]))];
  const lines = order.rows.map((row) => {
    const numbers = order.columns.map((column) => series.weights[row * picture.columns.length + column]);
    return [name(picture.rows[row]), ...numbers.map((value) => (value === value ? value.toPrecision(4) : ""))];
  });
  return [head, ...lines].map((line) => line.join("\t")).join("\n");
}

async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // A page from a file, or in a frame, may not access the clipboard; this way still works there.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

function figureOf(props: ViewProps, series: Series, order: Order, scale: Scale) {
  const { picture, palette } = props;
  const outlines = outlinesOf(props);
  const [rows, columns] = [order.rows.length, order.columns.length];
  const side = rows > 64 || columns > 64 ? 12 : 0;
  const cell = side ? { width: side, height: side } : CELL;
  return {
    width: NAMES + columns * cell.width + 50,
    height: HEADER + rows * cell.height + 8,
    draw: (pen: Parameters<Parameters<ViewProps["setFigure"]>[0]["draw"]>[0]) => {
      const values = new Float32Array(rows * columns);
      order.rows.forEach((row, y) => order.columns.forEach((column, x) => (values[y * columns + x] = series.weights[row * picture.columns.length + column])));
      pen.image(heatmap(values, rows, columns, 4096, scale), NAMES, HEADER, columns * cell.width, rows * cell.height);
      const size = side ? 9 : 12;
      order.rows.forEach((row, y) => pen.text(NAMES - 6, HEADER + (y + 0.5) * cell.height, clip(picture.units[picture.rows[row]].text), palette.foreground, size, "end"));
      order.columns.forEach((column, x) => pen.text(NAMES + (x + 0.5) * cell.width, HEADER - 6, clip(picture.units[picture.columns[column]].text), palette.foreground, size, "start", true));
      order.rows.forEach((row, y) => order.columns.forEach((column, x) => {
        const outline = outlines.get(`${row},${column}`);
        if (outline) pen.rect(NAMES + x * cell.width + 1, HEADER + y * cell.height + 1, cell.width - 2, cell.height - 2, outline.colour, true);
      }));
      if (side) return;
      for (let y = 0; y < rows; y++) {
        for (let x = 0; x < columns; x++) {
          const value = values[y * columns + x];
          pen.text(NAMES + (x + 0.5) * cell.width, HEADER + (y + 0.5) * cell.height, formatCell(value, scale.max), scale.textColour(value), 11, "middle");
        }
      }
    },
  };
}

function clip(text: string): string {
  const signs = [...text];
  return signs.length > 14 ? `${signs.slice(0, 13).join("")}…` : text;
}
