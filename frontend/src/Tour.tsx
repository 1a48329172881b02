// The tour: the six steps of docs/first-head.md, each of which sets the view and points at a part of it.
import { useEffect, useRef } from "preact/hooks";
import { labelText } from "./labels";
import type { HeadLabel, Payload } from "./payload";
import type { Source } from "./source";
import type { Patch, Update } from "./state";
import { visible } from "./text";

interface Step {
  title: string;
  text: string;
  patch: Patch;
  target: string; // what is highlighted
  command?: string;
}

interface Props {
  payload: Payload;
  source: Source;
  opening: { layer: number; head: number };
  step: number;
  go: (step: number) => void;
  update: Update;
}

export function Tour({ payload, source, opening, step, go, update }: Props) {
  const steps = stepsOf(payload, source, opening);
  const box = useRef<HTMLDivElement>(null);
  const { title, text, target, command } = steps[step];
  useEffect(() => {
    update(steps[step].patch);
    box.current!.focus();
  }, [step]);
  useEffect(() => {
    const root = box.current!.getRootNode() as ShadowRoot;
    // The part appears once the layer is decoded, however long that takes.
    const timer = setInterval(() => {
      const part = root.querySelector<HTMLElement>(target);
      if (!part) return;
      clearInterval(timer);
      part.classList.add("toured");
      part.scrollIntoView({ block: "nearest", behavior: "auto" });
    }, 120);
    return () => {
      clearInterval(timer);
      root.querySelectorAll(".toured").forEach((part) => part.classList.remove("toured"));
    };
  }, [step]);
  const onKeyDown = (event: KeyboardEvent) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.key === "Escape") go(-1);
    else if (by === undefined || !steps[step + by]) return;
    else go(step + by);
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="tour" ref={box} role="dialog" aria-label={`Tour, step ${step + 1} of ${steps.length}: ${title}`} tabIndex={-1} onKeyDown={onKeyDown}>
      <p class="step">{step + 1} of {steps.length}</p>
      <h2>{title}</h2>
      <p>{text}</p>
      {command && <p><code>{command}</code></p>}
      <p class="row">
        <button type="button" disabled={step === 0} onClick={() => go(step - 1)}>Back</button>
        {step + 1 < steps.length ? <button type="button" class="next" onClick={() => go(step + 1)}>Next</button> : <button type="button" class="next" onClick={() => go(-1)}>Done</button>}
        <button type="button" class="quiet" onClick={() => go(-1)}>Close</button>
      </p>
    </div>
  );
}

function stepsOf({ runs: [run] }: Payload, source: Source, { layer, head }: { layer: number; head: number }): Step[] {
  const name = `${layer + 1}-${head + 1}`;
  const [label] = source.labels(layer, head);
  const model = run.model && run.model !== "attention" ? run.model : "MODEL";
  const show: Patch = { view: "head", run: 0, quantity: 0, layer, heads: [head], across: "one", fusion: "each", units: "tokens", special: "fade", keep: "auto", part: "all", token: -1 };
  const token = wordToken(run.tokens.map((each) => (each.special ? "" : each.text)));
  const text = visible(run.tokens[token].text);
  const other = otherLabel(run.labels, label);
  return [
    {
      title: "Look",
      text: `This is head ${name} on one text. Each token attends to the tokens on the right. A wider line is a larger weight; only the strongest 80 % of each token's weight have lines, and those of special tokens are faded.`,
      patch: show,
      target: ".lines",
    },
    {
      title: "Count",
      text: `The weights of “${text}” as numbers: they sum to 1 over all tokens. But this is one token of one text. Count over many texts before you believe it, and compare with uniform attention.`,
      patch: { ...show, token, side: "from" },
      target: ".details",
      command: `bertology run attention/targets --model ${model} --corpus english`,
    },
    {
      title: "Name it, with evidence",
      text: label
        ? `Its label is “${labelText(label)}”: ${label.evidence}. A head has a label only if its score is high and far above what simpler rules reach.`
        : "This head has no label: nothing was measured for this model yet, or nothing clear was found. Give results with --results, and heads with a clear function get one.",
      patch: show,
      target: label ? ".labels" : ".details",
      command: `bertology run heads/functions --model ${model} --corpus english --json > functions.json`,
    },
    {
      title: "Ask what it is good for",
      text: other
        ? `Head ${other.layer + 1}-${other.head + 1}: “${labelText(other)}”. ${other.evidence}. A relation counts only if the head finds it more often than always choosing the word at one fixed distance.`
        : "A head that attends to a neighbour also finds many governors. So a relation counts only if the head finds it more often than always choosing the word at one fixed distance.",
      patch: other ? { ...show, layer: other.layer, heads: [other.head] } : show,
      target: ".lines",
      command: `bertology run heads/dependency --model ${model} --corpus english`,
    },
    {
      title: "Take it away",
      text: "Is it the only one? The small pictures are the other heads of the layer; some may do the same. Where a head looks is not what the model needs: disable each head in turn, and see what the model loses.",
      patch: show,
      target: ".multiples",
      command: `bertology run interventions/head_ablation --model ${model} --corpus english`,
    },
    {
      title: "Compare with what was published",
      text: "All heads of the model. Which published findings hold for it? Each claim is decided by intervals, beside its baselines.",
      patch: { ...show, view: "model" },
      target: ".model-view",
      command: `bertology claims ${model}`,
    },
  ];
}

/** A token to look at: the first word after a third of the text, else the first token. */
function wordToken(texts: string[]): number {
  const third = Math.floor(texts.length / 3);
  const isWord = (text: string) => /^\p{L}{2}|^\p{Lo}/u.test(text);
  const after = texts.findIndex((text, index) => index >= third && isWord(text));
  return after >= 0 ? after : Math.max(0, texts.findIndex(isWord));
}

/** The clearest label of a relation, which has an arrow. */
function otherLabel(labels: HeadLabel[], shown: HeadLabel | undefined): HeadLabel | undefined {
  const relations = labels.filter((label) => label !== shown && label.label.includes("→"));
  return relations.sort((a, b) => (b.effect ?? 0) - (a.effect ?? 0))[0];
}
