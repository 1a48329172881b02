// Attention as a table of numbers: sorted by any row or column, copied as text; only cells on screen are rendered.
import { copyText } from "../clipboard";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { largestSize } from "../colours";
import { type Picture, type Series, unitName } from "../compose";
import type { ViewProps } from "../context";
import { FADED_NOTE, weightScale, type WeightScale } from "../fade";
import { heatmap } from "../heatmap";
import { formatCell, formatExact, formatWeight } from "../numbers";
import { shorten } from "../text";
import { cellsOf } from "../trees";
import { ColourBar } from "./ColourBar";
import { useHeight } from "./fit";
import type { Cell } from "./maps";
import { Overview, type Part } from "./Overview";

const CELL = { width: 41, height: 24 };
const NAMES = 112;
const HEADER = 78;
const MARGIN = 3; // cells rendered beyond the screen
const OVERVIEW = 200;
const WIDE = 820; // with less width the panel is below the table
const FAINT = 0.03; // of the largest weight: less is written in grey
const TARGETS = 8; // strongest targets listed for a row
/** Scripts whose letters stand upright in a vertical line. */
const UPRIGHT = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Bopomofo}]/u;
const KEYS: { [key: string]: [number, number] } = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1], j: [1, 0], k: [-1, 0], l: [0, 1], h: [0, -1] };

export function MatrixView(props: ViewProps) {
  const { picture, arcs, palette, state, update, setFigure } = props;
  const [shown, setShown] = useState(0);
  const [message, setMessage] = useState("");
  const [chosen, setChosen] = useState<Cell | null>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const [viewport, setViewport] = useState({ top: 0, left: 0, height: 480, width: 800 });
  const height = useHeight(scroller, 300, [props.width]);
  const series = picture.series[Math.min(shown, picture.series.length - 1)];
  const order = useMemo(() => sorted(picture, series, state.sortRow, state.sortColumn), [picture, series, state.sortRow, state.sortColumn]);
  const colours = useMemo(() => weightScale(palette, [series.weights], picture, state.special), [palette, series, state.special]);
  const { scale } = colours;
  const largest = useMemo(() => largestSize([series.weights]), [series]);
  const outlines = useMemo(() => outlinesOf(props), [picture, arcs, palette]);
  const width = picture.columns.length;
  const cell = useMemo(() => (chosen && chosen.row < picture.rows.length && chosen.column < width ? chosen : strongestCell(series.weights, width)), [chosen, series]);
  const updateViewport = () => {
    const { scrollTop, scrollLeft, clientHeight, clientWidth } = scroller.current!;
    setViewport({ top: scrollTop, left: scrollLeft, height: clientHeight, width: clientWidth });
  };
  useLayoutEffect(updateViewport, [picture, props.width, height]);
  useLayoutEffect(() => setFigure(figureOf(props, series, order, colours)));
  const first = { row: Math.max(0, Math.floor((viewport.top - HEADER) / CELL.height) - MARGIN), column: Math.max(0, Math.floor((viewport.left - NAMES) / CELL.width) - MARGIN) };
  const last = {
    row: Math.min(order.rows.length, Math.ceil((viewport.top + viewport.height) / CELL.height) + MARGIN),
    column: Math.min(order.columns.length, Math.ceil((viewport.left + viewport.width) / CELL.width) + MARGIN),
  };
  const rows = order.rows.slice(first.row, last.row);
  const columns = order.columns.slice(first.column, last.column);
  const name = (unit: number) => unitName(picture.units[unit]);
  const copy = async () => {
    await copyText(asTable(picture, series, order));
    setMessage(`Copied ${order.rows.length} × ${order.columns.length} weights`);
  };
  const scrollTo = (row: number, column: number) => scroller.current!.scrollTo(column * CELL.width, row * CELL.height);
  const part: Part = {
    row: Math.round(viewport.top / CELL.height),
    column: Math.round(viewport.left / CELL.width),
    rows: Math.min(order.rows.length, Math.max(1, Math.floor((viewport.height - HEADER) / CELL.height))),
    columns: Math.min(width, Math.max(1, Math.floor((viewport.width - NAMES) / CELL.width))),
  };
  const scrolls = part.rows < order.rows.length || part.columns < width;
  const move = (event: KeyboardEvent) => {
    const by = KEYS[event.key];
    if (!by || event.target !== scroller.current || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const [y, x] = [order.rows.indexOf(cell.row) + by[0], order.columns.indexOf(cell.column) + by[1]];
    if (!(y in order.rows) || !(x in order.columns)) return;
    setChosen({ row: order.rows[y], column: order.columns[x] });
    const into = (position: number, start: number, count: number) => (position < start ? position : position >= start + count ? position - count + 1 : start);
    const [toRow, toColumn] = [into(y, part.row, part.rows), into(x, part.column, part.columns)];
    if (toRow !== part.row || toColumn !== part.column) scrollTo(toRow, toColumn);
  };
  const values = useMemo(() => (scrolls ? inOrder(series.weights, order, width) : null), [series, order, scrolls]);
  const ordered = useMemo(() => colours.ordered(order.rows, order.columns), [colours, order]);
  const wide = props.width >= WIDE;
  return (
    <section class="matrix-view" aria-label="Matrix view">
      <p class="row">
        {picture.series.length > 1 && (
          <label>
            Head{" "}
            <select value={shown} onChange={(event) => setShown(Number(event.currentTarget.value))}>
              {picture.series.map(({ name: text }, index) => (
                <option value={index} key={text}>{text}</option>
              ))}
            </select>
          </label>
        )}
        {picture.series.length === 1 && <b>{series.name}</b>}
        <button type="button" onClick={copy}>Copy table</button>
        <button type="button" disabled={state.sortRow < 0 && state.sortColumn < 0} onClick={() => update({ sortRow: -1, sortColumn: -1 })}>Original order</button>
        <span class="note" role="status">{message || "Rows attend to columns. Click a token to sort by it; arrow keys move from cell to cell."}</span>
      </p>
      <div class={`table ${wide ? "wide" : ""}`}>
        <div class="scroller" ref={scroller} onScroll={updateViewport} onKeyDown={move} tabIndex={0} role="grid" aria-rowcount={order.rows.length + 1} aria-colcount={order.columns.length + 1} aria-label={`Weights of ${series.name}`} style={{ maxHeight: `${wide ? height : Math.max(320, 0.7 * window.innerHeight)}px` }}>
          <div class="cells" style={{ width: `${NAMES + width * CELL.width}px`, height: `${HEADER + picture.rows.length * CELL.height}px` }}>
            <div class="header" role="row" style={{ height: `${HEADER}px` }}>
              <div role="columnheader" class="corner" style={{ width: `${NAMES}px` }}>from ↓ to →</div>
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
                    title={`${name(picture.columns[column])}\nSort rows by the attention to it`}
                    class={`${UPRIGHT.test(picture.units[picture.columns[column]].text) ? "upright" : ""} ${picture.units[picture.columns[column]].special ? "special" : ""} ${cell.column === column ? "selected" : ""}`}
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
                    title={`${name(picture.rows[row])}\nSort columns by its attention`}
                    class={`${picture.units[picture.rows[row]].special ? "special" : ""} ${cell.row === row ? "selected" : ""}`}
                    onClick={() => update({ sortRow: toggle(state.sortRow, picture.rows[row]) })}
                  >
                    <bdi>{picture.units[picture.rows[row]].text}</bdi>
                  </button>
                </div>
                {columns.map((column, position) => {
                  const value = series.weights[row * width + column];
                  const outline = outlines.get(`${row},${column}`);
                  const shade = colours.of(row, column);
                  const isChosen = cell.row === row && cell.column === column;
                  return (
                    <span
                      role="gridcell"
                      key={column}
                      data-cell={`${row},${column}`}
                      aria-selected={isChosen}
                      title={`${name(picture.rows[row])} → ${name(picture.columns[column])}: ${formatWeight(value, picture.step)}${outline ? ` (${outline.names.join(", ")})` : ""}`}
                      class={outline ? "edge" : undefined}
                      style={{ left: `${NAMES + (first.column + position) * CELL.width}px`, width: `${CELL.width - 1}px`, background: shade.css(value), color: Math.abs(value) < FAINT * scale.max ? palette.muted : shade.textColour(value), ...(outline ? { outline: `2px ${outline.dashed ? "dashed" : "solid"} ${outline.colour}` } : {}), ...(isChosen ? { boxShadow: `inset 0 0 0 2px ${palette.foreground}, inset 0 0 0 3px ${palette.background}` } : {}) }}
                      onPointerEnter={() => setChosen({ row, column })}
                      onPointerDown={() => setChosen({ row, column })}
                    >
                      {formatCell(value, largest, picture.step)}
                    </span>
                  );
                })}
              </div>
            ))}
          </div>
        </div>
        <aside class="panel" aria-label="Weights of a token">
          <div class="legend">
            <ColourBar bar={{ scale, low: picture.signed ? -scale.max : 0, high: scale.max || 1, texts: picture.signed ? [formatWeight(-scale.max), "0", formatWeight(scale.max)] : ["cell: 0", "", formatWeight(scale.max)] }} name="Weights" />
            {colours.fades && <p class="note">{FADED_NOTE}</p>}
          </div>
          {scrolls && values && <Overview values={values} rows={order.rows.length} columns={width} part={part} side={OVERVIEW} colours={ordered} palette={palette} show={scrollTo} />}
          <RowDetails picture={picture} series={series} cell={cell} choose={setChosen} />
        </aside>
      </div>
    </section>
  );
}

/** The chosen cell, and the strongest targets of its row. */
function RowDetails({ picture, series, cell, choose }: { picture: Picture; series: Series; cell: Cell; choose: (cell: Cell) => void }) {
  const width = picture.columns.length;
  const row = series.weights.subarray(cell.row * width, (cell.row + 1) * width);
  const ranked = Array.from(row.keys()).sort((a, b) => (Math.abs(row[b]) || 0) - (Math.abs(row[a]) || 0) || a - b);
  const from = picture.units[picture.rows[cell.row]];
  const to = picture.units[picture.columns[cell.column]];
  const max = Math.abs(row[ranked[0]]) || 1;
  return (
    <>
      <h2><bdi>{from.text}</bdi> → <bdi>{to.text}</bdi></h2>
      <p class="exact" role="status">
        <b>{formatExact(row[cell.column], picture.step)}</b> <span class="note">rank {ranked.indexOf(cell.column) + 1} of {width} in its row; token {picture.rows[cell.row] + 1} to token {picture.columns[cell.column] + 1}</span>
      </p>
      <table class="targets">
        <caption><bdi>{shorten(unitName(from), 24)}</bdi> attends to</caption>
        <tbody>
          {ranked.slice(0, TARGETS).map((column) => (
            <tr key={column} class={column === cell.column ? "shown-measure" : undefined} onClick={() => choose({ row: cell.row, column })}>
              <th scope="row"><bdi>{picture.units[picture.columns[column]].text}</bdi> <small>{picture.columns[column] + 1}</small></th>
              <td class="bar"><i style={{ width: `${(100 * Math.abs(row[column] || 0)) / max}%` }} /></td>
              <td>{formatWeight(row[column], picture.step)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {picture.step > 0 && <p class="note">Weights are stored in steps of at most {formatExact(picture.step)}.</p>}
    </>
  );
}

function strongestCell(weights: Float32Array, width: number): Cell {
  let best = 0;
  for (let i = 0; i < weights.length; i++) if (Math.abs(weights[i]) > Math.abs(weights[best]) || weights[best] !== weights[best]) best = i;
  return { row: Math.trunc(best / width), column: best % width };
}

function inOrder(weights: Float32Array, { rows, columns }: Order, width: number): Float32Array {
  const values = new Float32Array(rows.length * columns.length);
  rows.forEach((row, y) => columns.forEach((column, x) => (values[y * columns.length + x] = weights[row * width + column])));
  return values;
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

function figureOf(props: ViewProps, series: Series, order: Order, colours: WeightScale) {
  const { picture, palette } = props;
  const outlines = outlinesOf(props);
  const [rows, columns] = [order.rows.length, order.columns.length];
  const side = rows > 64 || columns > 64 ? 12 : 0;
  const cell = side ? { width: side, height: side } : CELL;
  return {
    width: NAMES + columns * cell.width + 50,
    height: HEADER + rows * cell.height + 8,
    draw: (pen: Parameters<Parameters<ViewProps["setFigure"]>[0]["draw"]>[0]) => {
      const values = inOrder(series.weights, order, picture.columns.length);
      const ordered = colours.ordered(order.rows, order.columns);
      const largest = largestSize([values]);
      pen.image(heatmap(values, rows, columns, 4096, ordered), NAMES, HEADER, columns * cell.width, rows * cell.height);
      const size = side ? 9 : 12;
      order.rows.forEach((row, y) => pen.text(NAMES - 6, HEADER + (y + 0.5) * cell.height, shorten(picture.units[picture.rows[row]].text, 14), palette.foreground, size, "end"));
      order.columns.forEach((column, x) => pen.text(NAMES + (x + 0.5) * cell.width, HEADER - 6, shorten(picture.units[picture.columns[column]].text, 14), palette.foreground, size, "start", true));
      order.rows.forEach((row, y) => order.columns.forEach((column, x) => {
        const outline = outlines.get(`${row},${column}`);
        if (outline) pen.rect(NAMES + x * cell.width + 1, HEADER + y * cell.height + 1, cell.width - 2, cell.height - 2, outline.colour, true);
      }));
      if (side) return;
      for (let y = 0; y < rows; y++) {
        for (let x = 0; x < columns; x++) {
          const value = values[y * columns + x];
          pen.text(NAMES + (x + 0.5) * cell.width, HEADER + (y + 0.5) * cell.height, formatCell(value, largest, picture.step), ordered.of(y, x).textColour(value), 11, "middle");
        }
      }
    },
  };
}
