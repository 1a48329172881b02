// Exports of the current view: drawing (SVG, PNG), weights (CSV, JSON), or a link to it.
import { useState } from "preact/hooks";
import type { Picture } from "./compose";
import { download, type Figure, pngOf, svgOf } from "./figure";

interface Props {
  figure: () => Figure | null;
  picture: Picture;
  background: string;
  name: string;
  link: (() => string) | null;
}

export function Export({ figure, picture, background, name, link }: Props) {
  const [message, setMessage] = useState("");
  const file = `${name.replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 60) || "view"}`;
  const save = (suffix: string, content: Blob) => {
    download(`${file}.${suffix}`, content);
    setMessage(`${file}.${suffix}`);
  };
  const kinds: [string, () => void][] = [
    ["svg", () => figure() && save("svg", new Blob([svgOf(figure()!, background)], { type: "image/svg+xml" }))],
    ["png", () => figure() && void pngOf(figure()!, background).then((blob) => save("png", blob), (error: Error) => setMessage(error.message))],
    ["csv", () => save("csv", new Blob([csv(picture)], { type: "text/csv" }))],
    ["json", () => save("json", new Blob([JSON.stringify(json(picture))], { type: "application/json" }))],
    ["pdf", () => window.print()],
  ];
  return (
    <details class="export">
      <summary>Export</summary>
      <div class="menu">
        {kinds.map(([kind, act]) => (
          <button type="button" key={kind} data-export={kind} onClick={act}>{kind === "pdf" ? "PDF (print)" : kind.toUpperCase()}</button>
        ))}
        {link && (
          <button type="button" data-export="link" onClick={() => void navigator.clipboard?.writeText(link()).then(() => setMessage("Link copied"), () => setMessage(link()))}>Copy link</button>
        )}
        <span role="status" class="note">{message}</span>
      </div>
    </details>
  );
}

export function csv(picture: Picture): string {
  const lines = ["head,from,from_token,to,to_token,weight"];
  for (const { name, weights } of picture.series) {
    picture.rows.forEach((from, row) => {
      picture.columns.forEach((to, column) => {
        const value = weights[row * picture.columns.length + column];
        if (value !== value) return;
        lines.push([quote(name), from, quote(picture.units[from].text), to, quote(picture.units[to].text), value.toPrecision(5)].join(","));
      });
    });
  }
  return lines.join("\r\n") + "\r\n";
}

function quote(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function json(picture: Picture): object {
  const width = picture.columns.length;
  const token = (unit: number) => ({ index: unit, text: picture.units[unit].text });
  const rounded = (value: number) => (value === value ? Number(value.toPrecision(5)) : null);
  return {
    from: picture.rows.map(token),
    to: picture.columns.map(token),
    fraction_shown: picture.fraction,
    heads: picture.series.map(({ name, weights }) => ({
      head: name,
      weights: picture.rows.map((_, row) => Array.from(weights.subarray(row * width, (row + 1) * width), rounded)),
    })),
  };
}
