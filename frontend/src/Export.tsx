// What is on screen as a file: the drawing as SVG or PNG, the weights as CSV or JSON, or a link to this picture.
import { useState } from "preact/hooks";
import type { Picture } from "./compose";
import { download, type Figure, pngOf, svgOf } from "./figure";

interface Props {
  figure: () => Figure | null;
  picture: Picture;
  paper: string;
  name: string;
  link: (() => string) | null;
}

export function Export({ figure, picture, paper, name, link }: Props) {
  const [said, setSaid] = useState("");
  const file = `${name.replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 60) || "view"}`;
  const saved = (suffix: string, content: Blob) => {
    download(`${file}.${suffix}`, content);
    setSaid(`${file}.${suffix}`);
  };
  const kinds: [string, () => void][] = [
    ["svg", () => figure() && saved("svg", new Blob([svgOf(figure()!, paper)], { type: "image/svg+xml" }))],
    ["png", () => figure() && void pngOf(figure()!, paper).then((blob) => saved("png", blob), (error: Error) => setSaid(error.message))],
    ["csv", () => saved("csv", new Blob([csv(picture)], { type: "text/csv" }))],
    ["json", () => saved("json", new Blob([JSON.stringify(json(picture))], { type: "application/json" }))],
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
          <button type="button" data-export="link" onClick={() => void navigator.clipboard?.writeText(link()).then(() => setSaid("Link copied"), () => setSaid(link()))}>Copy link</button>
        )}
        <span role="status" class="note">{said}</span>
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
        lines.push([quoted(name), from, quoted(picture.units[from].text), to, quoted(picture.units[to].text), value.toPrecision(5)].join(","));
      });
    });
  }
  return lines.join("\r\n") + "\r\n";
}

function quoted(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function json(picture: Picture): object {
  const width = picture.columns.length;
  const token = (unit: number) => ({ index: unit, text: picture.units[unit].text });
  const rounded = (value: number) => (value === value ? Number(value.toPrecision(5)) : null);
  return {
    from: picture.rows.map(token),
    to: picture.columns.map(token),
    share_on_screen: picture.share,
    maps: picture.series.map(({ name, weights }) => ({
      head: name,
      weights: picture.rows.map((_, row) => Array.from(weights.subarray(row * width, (row + 1) * width), rounded)),
    })),
  };
}
