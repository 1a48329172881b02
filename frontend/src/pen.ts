// One drawing for two media: canvas (screen, PNG) and SVG (export).

export type Anchor = "start" | "middle" | "end";

export interface Pen {
  /** Lines of one colour, opacity and width: x1, y1, x2, y2 of each. */
  lines(points: number[], colour: string, opacity: number, width: number): void;
  /** Curves with level ends, of one opaque colour: x1, y1, x2, y2 of each. */
  curves(points: number[], colour: string, width: number): void;
  /** A cubic Bézier curve. */
  curve(points: Curve, colour: string, opacity: number, width: number, dashed?: boolean): void;
  rect(x: number, y: number, width: number, height: number, colour: string, outline?: boolean): void;
  text(x: number, y: number, text: string, colour: string, size: number, anchor: Anchor, rotated?: boolean, style?: TextStyle): void;
  image(picture: HTMLCanvasElement, x: number, y: number, width: number, height: number): void;
}

/** `title` is the whole text, if the text drawn is cut. */
export interface TextStyle {
  bold?: boolean;
  italic?: boolean;
  title?: string;
}

/** x and y of the start, the two control points and the end. */
export type Curve = [number, number, number, number, number, number, number, number];

export const FONT = "system-ui, -apple-system, 'Segoe UI', 'Noto Sans', 'Liberation Sans', sans-serif";

export class CanvasPen implements Pen {
  constructor(private readonly context: CanvasRenderingContext2D) {}

  lines(points: number[], colour: string, opacity: number, width: number): void {
    const { context } = this;
    context.globalAlpha = opacity;
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.beginPath();
    for (let i = 0; i < points.length; i += 4) {
      context.moveTo(points[i], points[i + 1]);
      context.lineTo(points[i + 2], points[i + 3]);
    }
    context.stroke();
    context.globalAlpha = 1;
  }

  curves(points: number[], colour: string, width: number): void {
    const { context } = this;
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.beginPath();
    for (let i = 0; i < points.length; i += 4) {
      const middle = (points[i] + points[i + 2]) / 2;
      context.moveTo(points[i], points[i + 1]);
      context.bezierCurveTo(middle, points[i + 1], middle, points[i + 3], points[i + 2], points[i + 3]);
    }
    context.stroke();
  }

  curve([x1, y1, ax, ay, bx, by, x2, y2]: Curve, colour: string, opacity: number, width: number, dashed = false): void {
    const { context } = this;
    context.globalAlpha = opacity;
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.setLineDash(dashed ? [4, 3] : []);
    context.beginPath();
    context.moveTo(x1, y1);
    context.bezierCurveTo(ax, ay, bx, by, x2, y2);
    context.stroke();
    context.setLineDash([]);
    context.globalAlpha = 1;
  }

  rect(x: number, y: number, width: number, height: number, colour: string, outline = false): void {
    if (outline) {
      this.context.strokeStyle = colour;
      this.context.lineWidth = 1;
      this.context.strokeRect(x, y, width, height);
    } else {
      this.context.fillStyle = colour;
      this.context.fillRect(x, y, width, height);
    }
  }

  text(x: number, y: number, text: string, colour: string, size: number, anchor: Anchor, rotated = false, { bold, italic }: TextStyle = {}): void {
    const { context } = this;
    context.save();
    context.font = `${italic ? "italic " : ""}${bold ? "600 " : ""}${size}px ${FONT}`;
    context.fillStyle = colour;
    context.textAlign = anchor === "middle" ? "center" : anchor === "start" ? "left" : "right";
    context.textBaseline = "middle";
    context.translate(x, y);
    if (rotated) context.rotate(-Math.PI / 4);
    context.fillText(text, 0, 0);
    context.restore();
  }

  image(picture: HTMLCanvasElement, x: number, y: number, width: number, height: number): void {
    this.context.imageSmoothingEnabled = false;
    this.context.drawImage(picture, x, y, width, height);
  }
}

export class SvgPen implements Pen {
  private readonly parts: string[] = [];

  lines(points: number[], colour: string, opacity: number, width: number): void {
    let path = "";
    for (let i = 0; i < points.length; i += 4) {
      path += `M${rounded(points[i])} ${rounded(points[i + 1])}L${rounded(points[i + 2])} ${rounded(points[i + 3])}`;
    }
    const style = `stroke="${colour}" stroke-opacity="${rounded(opacity)}" stroke-width="${rounded(width)}"`;
    this.parts.push(`<path d="${path}" fill="none" ${style}/>`);
  }

  curves(points: number[], colour: string, width: number): void {
    let path = "";
    for (let i = 0; i < points.length; i += 4) {
      const [x1, y1, x2, y2] = points.slice(i, i + 4).map(rounded);
      const middle = rounded((points[i] + points[i + 2]) / 2);
      path += `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`;
    }
    this.parts.push(`<path d="${path}" fill="none" stroke="${colour}" stroke-width="${rounded(width)}"/>`);
  }

  curve(points: Curve, colour: string, opacity: number, width: number, dashed = false): void {
    const [x1, y1, ...rest] = points.map(rounded);
    const style = `stroke="${colour}" stroke-opacity="${rounded(opacity)}" stroke-width="${rounded(width)}"`;
    this.parts.push(`<path d="M${x1} ${y1}C${rest.join(" ")}" fill="none" ${style}${dashed ? ' stroke-dasharray="4 3"' : ""}/>`);
  }

  rect(x: number, y: number, width: number, height: number, colour: string, outline = false): void {
    const paint = outline ? `fill="none" stroke="${colour}"` : `fill="${colour}"`;
    const size = `width="${rounded(width)}" height="${rounded(height)}"`;
    this.parts.push(`<rect x="${rounded(x)}" y="${rounded(y)}" ${size} ${paint}/>`);
  }

  text(x: number, y: number, text: string, colour: string, size: number, anchor: Anchor, rotated = false, { bold, italic, title }: TextStyle = {}): void {
    const turn = rotated ? ` transform="rotate(-45 ${rounded(x)} ${rounded(y)})"` : "";
    const position = `x="${rounded(x)}" y="${rounded(y)}" font-size="${size}" fill="${colour}" text-anchor="${anchor}"`;
    const style = `${bold ? ' font-weight="600"' : ""}${italic ? ' font-style="italic"' : ""}`;
    const whole = title && title !== text ? `<title>${escapeXml(title)}</title>` : "";
    this.parts.push(`<text ${position} dominant-baseline="central"${style}${turn}>${whole}${escapeXml(text)}</text>`);
  }

  image(picture: HTMLCanvasElement, x: number, y: number, width: number, height: number): void {
    const position = `x="${rounded(x)}" y="${rounded(y)}" width="${rounded(width)}" height="${rounded(height)}"`;
    const style = `style="image-rendering:pixelated"`;
    this.parts.push(`<image ${position} ${style} preserveAspectRatio="none" href="${picture.toDataURL()}"/>`);
  }

  toSvg(width: number, height: number, background: string): string {
    const size = `width="${Math.ceil(width)}" height="${Math.ceil(height)}"`;
    return (
      `<svg xmlns="http://www.w3.org/2000/svg" ${size} viewBox="0 0 ${Math.ceil(width)} ${Math.ceil(height)}" ` +
      `font-family="${escapeXml(FONT)}"><rect width="100%" height="100%" fill="${background}"/>${this.parts.join("")}</svg>`
    );
  }
}

function rounded(value: number): string {
  return String(Math.round(value * 100) / 100);
}

/** Text for XML; control characters, which XML does not allow, are replaced. */
function escapeXml(text: string): string {
  const safe = text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "\ufffd");
  return safe.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;").replaceAll("'", "&#39;");
}
