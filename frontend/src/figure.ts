// What a view hands to export: its size and how to draw it, the words of its tokens included.
import { CanvasPen, type Pen, SvgPen } from "./pen";

export interface Figure {
  width: number;
  height: number;
  draw: (pen: Pen) => void;
}

/** What a figure needs to be understood away from the page: words below it, and what its colours stand for. */
export interface Caption {
  lines: string[];
  colours: { name: string; colour: string }[];
  ink: string;
  soft: string;
}

const CAPTION = { line: 17, swatch: 74, margin: 10, least: 460 };

export function captioned(figure: Figure, { lines, colours, ink, soft }: Caption): Figure {
  const width = Math.max(figure.width, CAPTION.least);
  const across = Math.max(1, Math.floor((width - 2 * CAPTION.margin) / CAPTION.swatch));
  const letters = Math.floor((width - 2 * CAPTION.margin) / 6.2);
  const rows = Math.ceil(colours.length / across);
  return {
    width,
    height: figure.height + CAPTION.margin + CAPTION.line * (lines.length + rows),
    draw: (pen) => {
      figure.draw(pen);
      colours.forEach(({ name, colour }, index) => {
        const [x, y] = [CAPTION.margin + (index % across) * CAPTION.swatch, figure.height + CAPTION.line * (Math.trunc(index / across) + 0.5)];
        pen.rect(x, y - 5, 10, 10, colour);
        pen.text(x + 14, y, name, ink, 11, "start");
      });
      lines.forEach((line, index) => {
        const signs = [...line];
        const text = signs.length > letters ? `${signs.slice(0, letters - 1).join("")}…` : line;
        pen.text(CAPTION.margin, figure.height + CAPTION.line * (rows + index + 0.5), text, index ? soft : ink, 11, "start");
      });
    },
  };
}

const LARGEST = 16000; // pixels a side; browsers draw nothing on larger canvases

export function scaleFor(width: number, height: number, wanted: number): number {
  return Math.min(wanted, LARGEST / Math.max(width, height, 1));
}

/** Draw on a canvas of this many CSS pixels, as sharp as the screen. */
export function paint(canvas: HTMLCanvasElement, figure: Figure): void {
  const scale = scaleFor(figure.width, figure.height, window.devicePixelRatio || 1);
  canvas.width = Math.max(1, Math.round(figure.width * scale));
  canvas.height = Math.max(1, Math.round(figure.height * scale));
  const context = canvas.getContext("2d")!;
  context.scale(scale, scale);
  figure.draw(new CanvasPen(context));
}

export function svgOf(figure: Figure, paper: string): string {
  const pen = new SvgPen();
  figure.draw(pen);
  return pen.finished(figure.width, figure.height, paper);
}

export function pngOf(figure: Figure, paper: string): Promise<Blob> {
  const canvas = document.createElement("canvas");
  const scale = scaleFor(figure.width, figure.height, 2);
  canvas.width = Math.ceil(figure.width * scale);
  canvas.height = Math.ceil(figure.height * scale);
  const context = canvas.getContext("2d")!;
  context.scale(scale, scale);
  const pen = new CanvasPen(context);
  pen.rect(0, 0, figure.width, figure.height, paper);
  figure.draw(pen);
  return new Promise((resolve, reject) => canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("too large to draw"))), "image/png"));
}

export function download(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
