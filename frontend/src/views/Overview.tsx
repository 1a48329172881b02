// A long table in small, with a frame around the part on screen that the pointer drags and the arrow keys move.
import { useLayoutEffect, useRef } from "preact/hooks";
import type { WeightScale } from "../fade";
import { paint } from "../figure";
import { heatmap, poolingNote } from "../heatmap";
import type { Palette } from "../palette";

/** The part on screen: first row and column, and how many of each. */
export interface Part {
  row: number;
  column: number;
  rows: number;
  columns: number;
}

interface Props {
  values: Float32Array;
  rows: number;
  columns: number;
  part: Part;
  side: number;
  colours: WeightScale;
  palette: Palette;
  show: (row: number, column: number) => void; // puts this row and column first
}

export function Overview({ values, rows, columns, part, side, colours, palette, show }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const image = useRef<{ values: Float32Array; colours: WeightScale; picture: HTMLCanvasElement } | null>(null);
  const [across, down] = [side / columns, side / rows];
  useLayoutEffect(() => {
    if (image.current?.values !== values || image.current.colours !== colours) image.current = { values, colours, picture: heatmap(values, rows, columns, side, colours) };
    paint(canvas.current!, {
      width: side + 2,
      height: side + 2,
      draw: (pen) => {
        pen.image(image.current!.picture, 1, 1, side, side);
        pen.rect(0.5, 0.5, side + 1, side + 1, palette.grid, true);
        const [x, y, width, height] = [1 + part.column * across, 1 + part.row * down, part.columns * across, part.rows * down];
        pen.rect(x, y, width, height, palette.background, true);
        pen.rect(x - 1, y - 1, width + 2, height + 2, palette.foreground, true);
      },
    });
  });
  const to = (row: number, column: number) => show(Math.max(0, Math.min(rows - part.rows, Math.round(row))), Math.max(0, Math.min(columns - part.columns, Math.round(column))));
  const drag = (event: PointerEvent) => {
    if (event.type === "pointerdown") (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
    else if (!event.buttons) return;
    to(event.offsetY / down - part.rows / 2, event.offsetX / across - part.columns / 2);
  };
  const move = (event: KeyboardEvent) => {
    const by = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key];
    if (!by) return;
    event.preventDefault();
    const distance = (count: number) => (event.shiftKey ? 1 : Math.max(1, Math.floor(count / 2)));
    to(part.row + by[0] * distance(part.rows), part.column + by[1] * distance(part.columns));
  };
  return (
    <div class="table-overview">
      <canvas
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-label={`Overview of ${rows} rows and ${columns} columns. On screen: rows ${part.row + 1} to ${part.row + part.rows}, columns ${part.column + 1} to ${part.column + part.columns}. Arrow keys move the frame.`}
        style={{ width: `${side + 2}px`, height: `${side + 2}px` }}
        onPointerDown={drag}
        onPointerMove={drag}
        onKeyDown={move}
      />
      <p class="note">Rows {part.row + 1}–{part.row + part.rows} of {rows}, columns {part.column + 1}–{part.column + part.columns} of {columns}. Drag the frame. {poolingNote(rows, columns, side)}</p>
    </div>
  );
}
