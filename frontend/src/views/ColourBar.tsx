// The colours of a scale with its lowest, neutral and highest value.
import type { Scale } from "../colours";
import type { Pen } from "../pen";
import type { Palette } from "../palette";

const STEPS = 40;

export interface Bar {
  scale: Scale;
  low: number; // relative to the neutral value, as the scale is
  high: number;
  texts: string[]; // of the lowest, the neutral and the highest value
}

export function ColourBar({ bar, name }: { bar: Bar; name: string }) {
  const { scale, low, high, texts } = bar;
  const stops = Array.from({ length: STEPS + 1 }, (_, i) => scale.css(low + ((high - low) * i) / STEPS));
  const neutral = (100 * -low) / (high - low);
  return (
    <div class="colour-bar" role="img" aria-label={`${name}: colours from ${texts.filter(Boolean).join(" over ")}`}>
      <i style={{ background: `linear-gradient(90deg, ${stops.join(", ")})` }}>{neutral > 1 && neutral < 99 && <u style={{ left: `${neutral}%` }} />}</i>
      <span style={{ gridTemplateColumns: texts[1] ? `minmax(max-content, ${neutral}fr) auto minmax(max-content, ${100 - neutral}fr)` : "auto auto" }}>
        <span>{texts[0]}</span>
        {texts[1] && <span>{texts[1]}</span>}
        <span>{texts[2]}</span>
      </span>
    </div>
  );
}

export function drawBar(pen: Pen, { scale, low, high, texts }: Bar, palette: Palette, x: number, y: number, width: number): void {
  for (let i = 0; i < STEPS; i++) pen.rect(x + (i * width) / STEPS, y, width / STEPS + 0.5, 8, scale.css(low + ((high - low) * (i + 0.5)) / STEPS));
  const neutral = x + (width * -low) / (high - low);
  if (neutral > x && neutral < x + width) pen.lines([neutral, y - 2, neutral, y + 10], palette.foreground, 1, 1);
  pen.text(x, y + 17, texts[0], palette.muted, 10, "start");
  pen.text(x + width, y + 17, texts[2], palette.muted, 10, "end");
  if (texts[1]) pen.text(neutral, y + 17, texts[1], palette.muted, 10, "middle");
}
