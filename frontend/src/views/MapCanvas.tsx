// A map of weights on screen: the cell under the pointer, the finger or the keyboard shows its tokens and its number.
import { useLayoutEffect, useRef } from "preact/hooks";
import type { WeightScale } from "../fade";
import { paint } from "../figure";
import type { Palette } from "../palette";
import { type Cell, cellAt, drawMap, type MapSize, outlineCell, type WeightMap } from "./maps";
import { Tip } from "./Tip";

interface Props {
  map: WeightMap;
  size: MapSize;
  colours: WeightScale;
  palette: Palette;
  label: string;
  cell: Cell | null;
  point: (cell: Cell | null) => void;
  describe: ((cell: Cell) => string[]) | null; // a heading and lines; null if another map shows them
  name?: string;
}

const KEYS: { [key: string]: [number, number] } = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1], j: [1, 0], k: [-1, 0], l: [0, 1], h: [0, -1] };

export function MapCanvas({ map, size, colours, palette, label, cell, point, describe, name }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useLayoutEffect(
    () =>
      paint(canvas.current!, {
        ...size,
        draw: (pen) => {
          drawMap(pen, map, colours, palette, size);
          if (cell) outlineCell(pen, map, size, cell, palette);
        },
      }),
    [map, size, colours, palette, cell?.row, cell?.column],
  );
  const read = (event: PointerEvent) => {
    const next = cellAt(map, size, event.offsetX, event.offsetY);
    if (next?.row !== cell?.row || next?.column !== cell?.column) point(next);
  };
  const move = (event: KeyboardEvent) => {
    if (event.key === "Escape") return point(null);
    const by = KEYS[event.key];
    if (!by || event.ctrlKey || event.metaKey || event.altKey) return undefined;
    event.preventDefault();
    const within = (value: number, count: number) => Math.max(0, Math.min(count - 1, value));
    const start = cell ?? { row: -by[0], column: -by[1] };
    return point({ row: within(start.row + by[0], map.rows.length), column: within(start.column + by[1], map.columns.length) });
  };
  const [down, right] = [size.side / map.rows.length, size.side / map.columns.length];
  return (
    <div class="map" style={{ width: `${size.width}px` }}>
      <canvas
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-label={`${label}. Arrow keys move from cell to cell.`}
        data-map={name}
        onPointerMove={read}
        onPointerDown={read}
        onPointerLeave={(event) => event.pointerType === "mouse" && point(null)}
        onKeyDown={move}
        onBlur={() => point(null)}
        style={{ width: `${size.width}px`, height: `${size.height}px` }}
      />
      {cell && describe && <Tip x={size.left + (Math.max(0, cell.column) + 0.5) * right} y={size.top + (Math.max(0, cell.row) + 1) * down} width={size.width} height={size.height} lines={describe(cell)} />}
    </div>
  );
}
