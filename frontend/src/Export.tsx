// Exports of the current view: drawing (SVG, PNG), weights (CSV, JSON), and texts: link, caption, papers, command.
import { copyText } from "./clipboard";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Picture } from "./compose";
import { download, type Figure, pngOf, svgOf } from "./figure";

interface Props {
  figure: () => Figure | null;
  picture: Picture;
  background: string;
  name: string;
  view: string;
  texts: { [kind: string]: { title: string; text: () => string } }; // what can be copied
}

export function Export({ figure, picture, background, name, view, texts }: Props) {
  const [message, setMessage] = useState("");
  const [isOpen, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => setOpen(false), [view]);
  useLayoutEffect(() => {
    if (!isOpen) return undefined;
    const onPointer = (event: Event) => event.composedPath().includes(box.current!) || setOpen(false);
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      setOpen(false);
      box.current?.querySelector<HTMLElement>("button")?.focus();
    };
    document.addEventListener("pointerdown", onPointer);
    window.addEventListener("keydown", onKey, { capture: true });
    return () => {
      document.removeEventListener("pointerdown", onPointer);
      window.removeEventListener("keydown", onKey, { capture: true });
    };
  }, [isOpen]);
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
  const copy = async (title: string, text: string) => {
    await copyText(text);
    setMessage(`${title} copied: ${text}`);
  };
  return (
    <div class="export" ref={box}>
      <button type="button" class="open" aria-expanded={isOpen} aria-haspopup="true" onClick={() => setOpen(!isOpen)}>Export</button>
      {isOpen && (
        <div class="menu" role="group" aria-label="Export">
          {kinds.map(([kind, act]) => (
            <button type="button" key={kind} data-export={kind} onClick={act}>{kind === "pdf" ? "PDF (print)" : kind.toUpperCase()}</button>
          ))}
          {Object.entries(texts).map(([kind, { title, text }]) => (
            <button type="button" key={kind} data-export={kind} onClick={() => void copy(title, text())}>Copy {title.toLowerCase().replace("bibtex", "BibTeX")}</button>
          ))}
          <output class="note">{message}</output>
        </div>
      )}
    </div>
  );
}

/** All digits of exact weights; five of those stored in steps. */
function digitsOf(picture: Picture): number {
  return picture.step ? 5 : 9;
}

export function csv(picture: Picture): string {
  const lines = ["head,from,from_token,to,to_token,weight"];
  const name = (unit: number) => quote(picture.units[unit].source || picture.units[unit].text);
  for (const series of picture.series) {
    picture.rows.forEach((from, row) => {
      picture.columns.forEach((to, column) => {
        const value = series.weights[row * picture.columns.length + column];
        if (value !== value) return;
        lines.push([quote(series.name), from, name(from), to, name(to), Number(value.toPrecision(digitsOf(picture)))].join(","));
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
  const token = (unit: number) => {
    const { text, source } = picture.units[unit];
    return source ? { index: unit, text, source } : { index: unit, text };
  };
  const rounded = (value: number) => (value === value ? Number(value.toPrecision(digitsOf(picture))) : null);
  return {
    from: picture.rows.map(token),
    to: picture.columns.map(token),
    fraction_shown: picture.fraction,
    step: picture.step,
    heads: picture.series.map(({ name, weights }) => ({
      head: name,
      weights: picture.rows.map((_, row) => Array.from(weights.subarray(row * width, (row + 1) * width), rounded)),
    })),
  };
}
