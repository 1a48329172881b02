// What is loading and since when, refused requests until they are dismissed, and the list of keys.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Problem, WorkbenchState } from "../api";

export function Loading({ server }: { server: WorkbenchState | null }) {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setSeconds((old) => old + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  const states = server ? [...server.models.slice(0, 2), ...server.corpora] : [];
  return (
    <section class="loading" aria-label="Loading">
      <h2>{states.some(({ status }) => status === "failed") ? "Something could not be loaded" : "Loading"}</h2>
      {!server && <p>{document.querySelector<HTMLElement>("#workbench")!.dataset.loading} <span class="note">for {seconds} s</span></p>}
      <dl class="facts">
        {states.flatMap((each) => [
          <dt key={each.name}>{each.name}</dt>,
          <dd key={`state ${each.name}`}>{each.status}{"since" in each && each.since !== null && each.status === "loading" ? `, for ${Math.max(0, Date.now() / 1000 - each.since).toFixed(0)} s` : ""}{each.message && <p class="problem">{each.message}</p>}</dd>,
        ])}
      </dl>
      <p class="note">You can write a text already; it is shown when the model is there.</p>
    </section>
  );
}

export function Problems({ problems, dismiss, isLost }: { problems: Problem[]; dismiss: (problem: Problem) => void; isLost: boolean }) {
  if (!problems.length && !isLost) return null;
  return (
    <div class="problems" role="alert">
      {isLost && <p>The server does not answer. Start `bertology serve` again: this page goes on when it is there, and jobs are resumed.</p>}
      {problems.map((problem) => (
        <p key={problem.paragraph}>{problem.paragraph} <button type="button" data-do="dismiss" onClick={() => dismiss(problem)}>Dismiss</button></p>
      ))}
    </div>
  );
}

const KEYS: [string, string][] = [
  ["t", "to the text"], ["m", "to the tokens: mask, replace, delete"], ["g", "to the heads; arrow keys move there"], ["x", "switch the head off, or on again"], ["u", "undo the last change of the model"],
  ["1 to 4", "lines, matrix, neurons, all heads"], ["/", "search"], ["p", "pin"], ["Escape", "release the selected token"], ["?", "this list"],
];

export function Keys({ close }: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog class="help" ref={dialog} onClose={close} aria-label="Keyboard shortcuts">
      <h2>Keyboard shortcuts</h2>
      <dl>{KEYS.flatMap(([key, text]) => [<dt key={key}><kbd>{key}</kbd></dt>, <dd key={`text ${key}`}>{text}</dd>])}</dl>
      <button type="button" onClick={() => dialog.current?.close()}>Close</button>
    </dialog>
  );
}
