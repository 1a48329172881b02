// Token texts for people: invisible and direction-changing characters made visible, long texts cut.

/** Characters that change the direction of text, or that take no space. */
const INVISIBLE = /[\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\u3164\ufeff\ufff9-\ufffb]/g;
const MAX_MARKS = 3; // combining marks on one letter
const MARKS = new RegExp(`(\\p{M}{${MAX_MARKS}})\\p{M}+`, "gu");

/** The text with visible signs for invisible characters: ␉ a tab, ␊ a newline, ␣ a blank, ⟨202E⟩ a direction mark. */
export function visible(text: string): string {
  if (text === "") return "∅";
  const shown = text
    .replace(/[\u0000-\u001f]/g, (sign) => String.fromCharCode(0x2400 + sign.charCodeAt(0)))
    .replace(/\u007f/g, "␡")
    .replace(/[\u0080-\u009f]/g, codeOf)
    .replace(INVISIBLE, codeOf)
    .replace(/^\p{Zs}+|\p{Zs}+$/gu, (blanks) => "␣".repeat(blanks.length))
    .replace(MARKS, "$1…");
  return /^\p{M}/u.test(shown) ? `◌${shown}` : shown;
}

function codeOf(sign: string): string {
  return `⟨${sign.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** At most so many signs; letters and their marks stay together. */
export function shorten(text: string, length: number): string {
  if (text.length <= length) return text;
  const signs = graphemes(text);
  return signs.length <= length ? text : `${signs.slice(0, Math.max(1, length - 1)).join("")}…`;
}

const segmenter = typeof Intl !== "undefined" && "Segmenter" in Intl ? new Intl.Segmenter(undefined, { granularity: "grapheme" }) : null;

export function graphemes(text: string): string[] {
  return segmenter ? Array.from(segmenter.segment(text), ({ segment }) => segment) : [...text];
}

const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/** The text for the middle of a sentence, so that text from right to left does not change the order of the sentence. */
export function isolate(text: string): string {
  return RIGHT_TO_LEFT.test(text) ? `\u2068${text}\u2069` : text;
}

let context: CanvasRenderingContext2D | null | undefined;

/** The width of a text in pixels. */
export function textWidth(text: string, size: number, font: string): number {
  context ??= document.createElement("canvas").getContext("2d");
  if (!context) return 0.6 * size * text.length;
  context.font = `${size}px ${font}`;
  return context.measureText(text).width;
}

/** The text, cut so that it is no wider than so many pixels. */
export function fitText(text: string, width: number, size: number, font: string): string {
  if (textWidth(text, size, font) <= width) return text;
  const signs = graphemes(text.slice(0, 400));
  let [low, high] = [0, signs.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (textWidth(`${signs.slice(0, middle).join("")}…`, size, font) <= width) low = middle;
    else high = middle - 1;
  }
  return `${signs.slice(0, low).join("")}…`;
}
