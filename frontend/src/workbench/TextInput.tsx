// The text and its tokens: typing edits the text, a click on a token masks, replaces or deletes it.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { EditRequest, GallerySentence, LiveAnswer } from "../api";
import type { Bench } from "./address";
import type { UpdateBench } from "./use";

interface Props {
  bench: Bench;
  update: UpdateBench;
  tokens: { text: string; special: boolean }[]; // before any edit
  answer: LiveAnswer | null;
  gallery: GallerySentence[];
  maxCharacters: number;
  status: string;
}

export function TextInput({ bench, update, tokens, answer, gallery, maxCharacters, status }: Props) {
  const [open, setOpen] = useState(-1);
  const isExample = bench.example !== null;
  const words = answer?.run.words ?? [];
  const type = (patch: Partial<Bench>) => update({ ...patch, example: null, edits: [], token: -1 }, "replace");
  useEffect(() => setOpen(-1), [bench.text, bench.textB, bench.example]);
  return (
    <section class="text-input" aria-label="Text">
      <div class="fields">
        <input
          type="text" class="text" aria-label="Text" placeholder="Write a sentence; [MASK] hides a word" spellcheck={false} autocomplete="off" maxLength={maxCharacters}
          value={isExample ? words.join(" ") : bench.text} onInput={(event) => type({ text: event.currentTarget.value })}
        />
        {bench.textB !== null && !isExample && (
          <input type="text" class="text" aria-label="Second text" placeholder="The second text of the pair" spellcheck={false} autocomplete="off" maxLength={maxCharacters} value={bench.textB} onInput={(event) => type({ textB: event.currentTarget.value })} />
        )}
        {!isExample && <button type="button" data-do="second" onClick={() => update({ textB: bench.textB === null ? "" : null, edits: [], token: -1 })}>{bench.textB === null ? "+ second text" : "− second text"}</button>}
        <Gallery gallery={gallery} update={update} />
        <output class="time" aria-label="Time from request to picture">{status}</output>
      </div>
      <div class="tokens-row" role="group" aria-label="Tokens: choose one to mask, replace or delete it">
        {isExample && <span class="note">Text {bench.example! + 1} of the corpus:</span>}
        {tokens.map((token, position) => {
          const edit = bench.edits.find((each) => each.position === position);
          return (
            <span class="token" key={position}>
              <button
                type="button" disabled={token.special && token.text !== "[MASK]"} data-token={position} class={edit ? `edited ${edit.action}` : ""} aria-expanded={open === position}
                aria-label={edit ? `${token.text}, ${edit.action === "replace" ? `replaced by ${edit.text ?? ""}` : edit.action === "mask" ? "masked" : "deleted"}` : undefined}
                onClick={() => setOpen(open === position ? -1 : position)}
              >
                {edit?.action === "replace" ? <><s>{token.text}</s> {edit.text}</> : edit?.action === "delete" ? <s>{token.text}</s> : token.text}
              </button>
              {open === position && <TokenMenu position={position} token={token.text} edit={edit} bench={bench} update={update} close={() => setOpen(-1)} />}
            </span>
          );
        })}
      </div>
    </section>
  );
}

interface MenuProps {
  position: number;
  token: string;
  edit: EditRequest | undefined;
  bench: Bench;
  update: UpdateBench;
  close: () => void;
}

function TokenMenu({ position, token, edit, bench, update, close }: MenuProps) {
  const [text, setText] = useState(edit?.text ?? "");
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    box.current?.querySelector<HTMLElement>("button")?.focus();
    const onPointer = (event: Event) => event.composedPath().includes(box.current!.parentElement!) || close();
    document.addEventListener("pointerdown", onPointer);
    return () => document.removeEventListener("pointerdown", onPointer);
  }, []);
  const opener = () => box.current?.parentElement?.querySelector<HTMLElement>("button");
  const set = (next: EditRequest | null) => {
    const others = bench.edits.filter((each) => each.position !== position);
    opener()?.focus();
    update({ edits: next ? [...others, next].sort((a, b) => a.position - b.position) : others, token: -1 });
    close();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    opener()?.focus();
    close();
  };
  return (
    <div class="menu" ref={box} role="group" aria-label={`Change ${token}`} onKeyDown={onKeyDown}>
      <button type="button" data-do="mask" onClick={() => set({ position, action: "mask" })}>Mask</button>
      <button type="button" data-do="delete" onClick={() => set({ position, action: "delete" })}>Delete</button>
      <form onSubmit={(event) => { event.preventDefault(); if (text.trim()) set({ position, action: "replace", text: text.trim() }); }}>
        <input type="text" aria-label={`Replace ${token} by`} placeholder="replace by" value={text} maxLength={200} onInput={(event) => setText(event.currentTarget.value)} />
        <button type="submit" disabled={!text.trim()}>Replace</button>
      </form>
      {edit && <button type="button" data-do="restore" onClick={() => set(null)}>As it was</button>}
    </div>
  );
}

function Gallery({ gallery, update }: { gallery: GallerySentence[]; update: UpdateBench }) {
  const choose = (index: number) => {
    const chosen = gallery[index];
    if (chosen) update({ text: chosen.text, textB: chosen.text_b, example: null, edits: [], token: -1 });
  };
  return (
    <select aria-label="Examples" value="" onChange={(event) => { choose(Number(event.currentTarget.value)); event.currentTarget.value = ""; }}>
      <option value="">examples</option>
      {gallery.map((each, index) => <option key={each.title} value={index} title={each.look_for}>{each.title}: {each.text}</option>)}
    </select>
  );
}
