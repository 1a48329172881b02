// The sheet of keyboard shortcuts, which `?` opens.
import { useEffect, useRef } from "preact/hooks";

const SHORTCUTS: [string, string][] = [
  ["Tab", "next control; in lists and grids the arrow keys move"],
  ["↑ ↓", "token above or below; PageUp, PageDown, Home and End move further"],
  ["← →", "the same token on the other side"],
  ["Enter", "pin the token, or select the head; again to release it"],
  ["[ ]", "previous or next head of the layer"],
  [", .", "previous or next layer"],
  ["1 … 5", "heads, model, matrix, neurons, difference"],
  ["a", "all heads of the layer, or one"],
  ["Shift + Enter", "on a head of the toolbar: only this head"],
  ["t", "tour"],
  ["Esc", "close, or release the pinned token"],
  ["?", "this sheet"],
];

export function Help({ close }: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current!.showModal(), []);
  return (
    <dialog ref={dialog} class="help" aria-labelledby="help-title" onClose={close} onClick={(event) => event.target === dialog.current && close()}>
      <h2 id="help-title">Keyboard</h2>
      <dl>
        {SHORTCUTS.map(([keys, text]) => [<dt key={keys}><kbd>{keys}</kbd></dt>, <dd key={text}>{text}</dd>])}
      </dl>
      <p class="note">Letters work while the page itself or a part of the view has the focus, and never in a text field.</p>
      <button type="button" onClick={close}>Close</button>
    </dialog>
  );
}
