// Lines between tokens: strength is weight, colour is head. A token under the pointer shows its own weights as numbers.
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Palette, Scale } from "../colours";
import type { Picture } from "../compose";
import { type Chosen, pin, type ViewProps } from "../context";
import { paint } from "../figure";
import { percent, weight } from "../numbers";
import type { Pen } from "../pen";
import { type Arcs, drawArcs, gutterWidth } from "../trees";
import { drawLines, faintest, type Geometry, type Span } from "./lines";

const LIST_WIDTH = { narrow: 116, wide: 190, squeezed: 92 };

const LONG = 48; // tokens; of longer inputs only what is in sight is made
const MARGIN = 12; // tokens made beyond what is in sight

export function HeadView(props: ViewProps) {
  const { picture, arcs, palette, width, chosen, state, update, hover, setFigure } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const lines = useRef<HTMLDivElement>(null);
  const count = Math.max(picture.rows.length, picture.columns.length);
  const step = count > 150 ? 18 : 22;
  const narrow = width < 560;
  // One tree stands beside the tokens that attend, a second beside those attended to.
  const gutters = arcs.slice(0, 2).map((one) => gutterWidth(one, narrow));
  const [left, right] = [gutters[0] ?? 0, gutters[1] ?? 0];
  const side = left ? beside(picture, narrow) : narrow ? LIST_WIDTH.narrow : LIST_WIDTH.wide;
  const between = Math.max(70, Math.min(560, width - 2 * side - left - right));
  const unit = chosen ? (chosen.side === "from" ? picture.rows : picture.columns)[chosen.place] : -1;
  const span = useSpan(lines, count, step);
  const faint = useMemo(() => faintest(picture, chosen, span), [picture, chosen, span]);
  const numbers = useMemo(() => chosen && meanWeights(picture, chosen), [picture, chosen]);
  const scale = useMemo(() => new Scale(palette, (numbers ?? []).reduce((most, one) => Math.max(most, Math.abs(one) || 0), 0)), [palette, numbers]);
  const height = step * (span.last - span.first);

  useLayoutEffect(() => {
    const inSight: Geometry = { left: 0, right: between, top: -span.first * step, step };
    paint(canvas.current!, { width: between, height, draw: (pen) => drawLines(pen, picture, inSight, palette, chosen, span, faint.cut) });
  }, [picture, palette, chosen, span, between, step]);
  useLayoutEffect(() => {
    const everything: Span = { first: 0, last: count };
    const place: Geometry = { left: left + side, right: left + side + between, top: 8, step };
    const whole = left + 2 * side + between + right;
    setFigure({
      width: whole,
      height: step * count + 16,
      draw: (pen) => {
        if (arcs[0]) drawArcs(pen, arcs[0], picture.rows, { tokens: left, width: left, away: -1, top: 8, step }, palette, unit);
        if (arcs[1]) drawArcs(pen, arcs[1], picture.columns, { tokens: whole - right, width: right, away: 1, top: 8, step }, palette, unit);
        drawLines(pen, picture, place, palette, chosen, everything, faintest(picture, chosen, everything).cut);
        picture.rows.forEach((unit, row) => pen.text(left + side - 6, 8 + (row + 0.5) * step, picture.units[unit].text, palette.ink, 13, "end"));
        picture.columns.forEach((unit, column) => pen.text(left + side + between + 6, 8 + (column + 0.5) * step, picture.units[unit].text, palette.ink, 13, "start"));
      },
    });
  });

  const list = (kind: "from" | "to") => (
    <TokenList
      kind={kind}
      picture={picture}
      span={span}
      step={step}
      chosen={chosen}
      pinnedToken={state.side === kind ? state.token : -1}
      numbers={chosen && chosen.side !== kind ? numbers : null}
      scale={scale}
      hover={hover}
      choose={(place) => update(pin({ side: kind, place }, state, picture))}
    />
  );
  return (
    <section class="head-view" aria-label="Head view">
      <p class="note drawn">
        {faint.drawn < faint.all &&
          `Lines: the ${faint.drawn.toLocaleString("en")} strongest of ${faint.all.toLocaleString("en")} weights of the tokens in sight, ${percent(faint.share)} of their weight. A token shows all of its own.`}
      </p>
      <div class="lines" style={{ gridTemplateColumns: `${left}px ${side}px ${between}px ${side}px ${right}px` }} onMouseLeave={() => hover(null)}>
        <span />
        <b class="side from">from</b>
        <span />
        <b class="side to">to</b>
        <span />
        <Beside arcs={arcs[0]} places={picture.rows} width={left} away={-1} span={span} step={step} palette={palette} unit={unit} />
        {list("from")}
        <div ref={lines} style={{ height: `${step * count}px` }}>
          <canvas ref={canvas} style={{ width: `${between}px`, height: `${height}px`, marginTop: `${span.first * step}px` }} role="img" aria-label={described(picture)} />
        </div>
        {list("to")}
        <Beside arcs={arcs[1]} places={picture.columns} width={right} away={1} span={span} step={step} palette={palette} unit={unit} />
      </div>
    </section>
  );
}

/** Tokens with arcs beside them get no more room than the longest of them needs with its number. */
function beside(picture: Picture, narrow: boolean): number {
  const longest = Math.max(...picture.units.map((unit) => unit.text.length));
  return Math.max(84, Math.min(narrow ? LIST_WIDTH.squeezed : LIST_WIDTH.wide, 8.2 * longest + 70));
}

interface BesideProps {
  arcs: Arcs | undefined;
  places: number[];
  width: number;
  away: 1 | -1;
  span: Span;
  step: number;
  palette: Palette;
  unit: number;
}

/** The arcs of one tree beside a list of tokens. */
function Beside({ arcs, places, width, away, span, step, palette, unit }: BesideProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const height = step * (span.last - span.first);
  useLayoutEffect(() => {
    const gutter = { tokens: away < 0 ? width : 0, width, away, top: -span.first * step, step };
    if (canvas.current && arcs) paint(canvas.current, { width, height, draw: (pen: Pen) => drawArcs(pen, arcs, places, gutter, palette, unit) });
  }, [arcs, places, width, span, step, palette, unit]);
  if (!arcs) return <span />;
  return (
    <div>
      <canvas ref={canvas} class="arcs" style={{ width: `${width}px`, height: `${height}px`, marginTop: `${span.first * step}px` }} role="img" aria-label={`${arcs.edges.length} arcs of ${arcs.tree.name}, ${arcs.tree.about}`} />
    </div>
  );
}

/** The tokens in sight and a margin, all of them in short inputs. */
function useSpan(lines: { current: HTMLElement | null }, count: number, step: number): Span {
  const [seen, setSeen] = useState<Span>({ first: 0, last: Math.min(count, 60) });
  useLayoutEffect(() => {
    if (count <= LONG) return undefined;
    const look = () => {
      const { top } = lines.current!.getBoundingClientRect();
      // In steps, so that not every pixel of scrolling draws anew.
      const first = Math.max(0, Math.floor(-top / step / MARGIN) * MARGIN - MARGIN);
      const last = Math.min(count, Math.ceil((window.innerHeight - top) / step / MARGIN) * MARGIN + MARGIN);
      setSeen((old) => (old.first === first && old.last === last ? old : { first, last: Math.max(first + 1, last) }));
    };
    look();
    window.addEventListener("scroll", look, { capture: true, passive: true });
    window.addEventListener("resize", look);
    return () => {
      window.removeEventListener("scroll", look, { capture: true });
      window.removeEventListener("resize", look);
    };
  }, [count, step]);
  return useMemo(() => (count <= LONG ? { first: 0, last: count } : seen), [count, seen]);
}

function described(picture: Picture): string {
  return `Lines from ${picture.rows.length} to ${picture.columns.length} tokens for ${picture.series.map((one) => one.name).join(", ")}`;
}

/** The mean over the series shown, from or to the chosen token. */
export function meanWeights(picture: Picture, chosen: Chosen): number[] {
  const columns = picture.columns.length;
  const others = chosen.side === "from" ? columns : picture.rows.length;
  return Array.from({ length: others }, (_, other) => {
    const place = chosen.side === "from" ? chosen.place * columns + other : other * columns + chosen.place;
    let [sum, count] = [0, 0];
    for (const { weights } of picture.series) {
      if (weights[place] === weights[place]) {
        sum += weights[place];
        count++;
      }
    }
    return count ? sum / picture.series.length : NaN;
  });
}

interface ListProps {
  kind: "from" | "to";
  picture: Picture;
  span: Span;
  step: number;
  chosen: Chosen | null;
  pinnedToken: number;
  numbers: number[] | null;
  scale: Scale;
  hover: (chosen: Chosen | null) => void;
  choose: (place: number) => void;
}

function TokenList({ kind, picture, span, step, chosen, pinnedToken, numbers, scale, hover, choose }: ListProps) {
  const places = kind === "from" ? picture.rows : picture.columns;
  const mine = chosen?.side === kind ? chosen.place : -1;
  const placeOf = (event: Event) => Number((event.target as HTMLElement).closest<HTMLElement>("[data-place]")?.dataset.place ?? -1);
  const focus = (list: Element | null | undefined, place: number) => list?.querySelector<HTMLElement>(`[data-place="${place}"]`)?.focus();
  const move = (event: KeyboardEvent) => {
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -MARGIN, End: MARGIN }[event.key];
    const list = event.currentTarget as HTMLElement;
    if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
      const other = event.key === "ArrowRight" ? "to" : "from";
      const last = (other === "to" ? picture.columns : picture.rows).length - 1;
      focus(list.parentElement!.querySelector(`ol.${other}`), Math.min(placeOf(event), last));
    } else if (event.key === "Escape") hover(null);
    else if (by !== undefined) focus(list, Math.max(0, Math.min(places.length - 1, placeOf(event) + by)));
    else return;
    event.preventDefault();
  };
  const here = places.slice(span.first, span.last);
  return (
    <ol
      class={`tokens ${kind}`}
      style={{ height: `${step * places.length}px`, paddingTop: `${span.first * step}px` }}
      aria-label={kind === "from" ? "Tokens that attend" : "Tokens attended to"}
      onMouseOver={(event) => placeOf(event) >= 0 && hover({ side: kind, place: placeOf(event) })}
      onFocusIn={(event) => placeOf(event) >= 0 && hover({ side: kind, place: placeOf(event) })}
      onClick={(event) => placeOf(event) >= 0 && choose(placeOf(event))}
      onKeyDown={move}
    >
      {here.map((unit, index) => {
        const place = span.first + index;
        const number = numbers?.[place];
        const shaded = number !== undefined && number === number;
        const style = { height: `${step}px`, ...(shaded ? { background: scale.css(number), color: scale.wantsDarkInk(number) ? "#16181c" : "#fff" } : {}) };
        const { text, special, segment } = picture.units[unit];
        return (
          <li key={unit} aria-setsize={places.length} aria-posinset={place + 1}>
            <button
              type="button"
              data-place={place}
              style={style}
              tabIndex={(mine >= span.first && mine < span.last ? mine : span.first) === place ? 0 : -1}
              aria-pressed={pinnedToken === unit}
              class={`${mine === place ? "mine" : ""} ${special ? "special" : ""} segment-${segment}`}
              title={text}
            >
              <bdi>{text}</bdi>
              {number !== undefined && <span class="number">{weight(number)}</span>}
            </button>
          </li>
        );
      })}
    </ol>
  );
}
