// The drawing of a view, for the screen and for export.
import { CanvasPen, type Pen, SvgPen } from "./pen";

export interface Figure {
  width: number;
  height: number;
  draw: (pen: Pen) => void;
}

/** Text and colour legend below an exported figure. */
export interface Caption {
  lines: string[];
  colours: { name: string; colour: string }[];
  foreground: string;
  muted: string;
}

const CAPTION = { line: 17, swatch: 74, margin: 10, minWidth: 460 };

export function withCaption(figure: Figure, { lines, colours, foreground, muted }: Caption): Figure {
  const width = Math.max(figure.width, CAPTION.minWidth);
  const across = Math.max(1, Math.floor((width - 2 * CAPTION.margin) / CAPTION.swatch));
  const maxLength = Math.floor((width - 2 * CAPTION.margin) / 6.2);
  const rows = Math.ceil(colours.length / across);
  return {
    width,
    height: figure.height + CAPTION.margin + CAPTION.line * (lines.length + rows),
    draw: (pen) => {
      figure.draw(pen);
      colours.forEach(({ name, colour }, index) => {
        const [x, y] = [CAPTION.margin + (index % across) * CAPTION.swatch, figure.height + CAPTION.line * (Math.trunc(index / across) + 0.5)];
        pen.rect(x, y - 5, 10, 10, colour);
        pen.text(x + 14, y, name, foreground, 11, "start");
      });
      lines.forEach((line, index) => {
        const signs = [...line];
        const text = signs.length > maxLength ? `${signs.slice(0, maxLength - 1).join("")}…` : line;
        pen.text(CAPTION.margin, figure.height + CAPTION.line * (rows + index + 0.5), text, index ? muted : foreground, 11, "start");
      });
    },
  };
}

const MAX_SIDE = 16000; // pixels; browsers draw nothing on larger canvases

export function scaleFor(width: number, height: number, preferred: number): number {
  return Math.min(preferred, MAX_SIDE / Math.max(width, height, 1));
}

/** Draw on a canvas of this size in CSS pixels, at the resolution of the screen. */
export function paint(canvas: HTMLCanvasElement, figure: Figure): void {
  const scale = scaleFor(figure.width, figure.height, window.devicePixelRatio || 1);
  canvas.width = Math.max(1, Math.round(figure.width * scale));
  canvas.height = Math.max(1, Math.round(figure.height * scale));
  const context = canvas.getContext("2d")!;
  context.scale(scale, scale);
  figure.draw(new CanvasPen(context));
}

export function svgOf(figure: Figure, background: string): string {
  const pen = new SvgPen();
  figure.draw(pen);
  return pen.toSvg(figure.width, figure.height, background);
}

export function pngOf(figure: Figure, background: string): Promise<Blob> {
  const canvas = document.createElement("canvas");
  const scale = scaleFor(figure.width, figure.height, 2);
  canvas.width = Math.ceil(figure.width * scale);
  canvas.height = Math.ceil(figure.height * scale);
  const context = canvas.getContext("2d")!;
  context.scale(scale, scale);
  const pen = new CanvasPen(context);
  pen.rect(0, 0, figure.width, figure.height, background);
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
