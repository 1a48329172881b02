// The drawing of a view, for the screen and for export.
import { CanvasPen, FONT, type Pen, SvgPen } from "./pen";
import { fitText, textWidth } from "./text";

export interface Figure {
  width: number;
  height: number;
  draw: (pen: Pen) => void;
}

/** Text and legend below an exported figure; `strengths` are lines and the weights they stand for. */
export interface Caption {
  lines: string[];
  colours: { name: string; colour: string }[];
  strengths: { name: string; colour: string; width: number }[];
  foreground: string;
  muted: string;
}

const CAPTION = { line: 17, swatch: 74, margin: 10, minWidth: 460, font: 11.5 };

export function withCaption(figure: Figure, { lines, colours, strengths, foreground, muted }: Caption): Figure {
  const width = Math.max(figure.width, CAPTION.minWidth);
  const across = Math.max(1, Math.floor((width - 2 * CAPTION.margin) / CAPTION.swatch));
  const wrapped = lines.flatMap((line, index) => wrap(line, width - 2 * CAPTION.margin).map((text) => ({ text, colour: index ? muted : foreground })));
  const rows = Math.ceil(colours.length / across) + (strengths.length ? 1 : 0);
  const legend = strengths.length ? 1 : 0;
  const y = (line: number) => figure.height + CAPTION.line * (line + 0.5);
  return {
    width,
    height: figure.height + CAPTION.margin + CAPTION.line * (wrapped.length + rows),
    draw: (pen) => {
      figure.draw(pen);
      if (legend) pen.text(CAPTION.margin, y(0), "weight", muted, 11, "start");
      strengths.forEach(({ name, colour, width: stroke }, index) => {
        const x = CAPTION.margin + 48 + index * CAPTION.swatch;
        pen.curves([x, y(0), x + 24, y(0)], colour, stroke);
        pen.text(x + 29, y(0), name, foreground, 11, "start");
      });
      colours.forEach(({ name, colour }, index) => {
        const [x, line] = [CAPTION.margin + (index % across) * CAPTION.swatch, legend + Math.trunc(index / across)];
        pen.rect(x, y(line) - 5, 10, 10, colour);
        pen.text(x + 14, y(line), name, foreground, 11, "start");
      });
      wrapped.forEach(({ text, colour }, index) => pen.text(CAPTION.margin, y(rows + index), text, colour, CAPTION.font, "start"));
    },
  };
}

/** The text in lines that are no wider than so many pixels. */
function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    const longer = line ? `${line} ${word}` : word;
    if (line && textWidth(longer, CAPTION.font, FONT) > width) {
      lines.push(line);
      line = word;
    } else line = longer;
  }
  return [...lines, line].map((each) => fitText(each, width, CAPTION.font, FONT));
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
