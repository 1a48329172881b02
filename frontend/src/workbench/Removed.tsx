// What is changed in the model: heads off, uniform, mean or kept; layers off. Undo takes the last change back.
import { useState } from "preact/hooks";
import { type Action, type Bench, isChanged, layerOf } from "./address";
import type { UpdateBench } from "./use";

const ACTION_NAMES: Record<Action, string> = { off: "switch off", uniform: "make uniform", mean: "replace by mean", keep: "keep only" };

interface Props {
  bench: Bench;
  update: UpdateBench;
  undo: (() => void) | null;
}

/** The change that an action makes to a head; a head has one change at a time. */
export function changeHead(bench: Bench, action: Action, head: string): Partial<Bench> {
  const without = (heads: string[]) => heads.filter((each) => each !== head);
  const lists = { off: without(bench.off), uniform: without(bench.uniform), mean: without(bench.mean), keep: without(bench.keep) };
  return bench[action].includes(head) ? lists : { ...lists, [action]: [...lists[action], head] };
}

export function Removed({ bench, update, undo }: Props) {
  const [action, setAction] = useState<Action>("off");
  const layer = layerOf(bench.head);
  const chips: [string, Partial<Bench>][] = [
    ...bench.off.map((head): [string, Partial<Bench>] => [`${head} off`, changeHead(bench, "off", head)]),
    ...bench.uniform.map((head): [string, Partial<Bench>] => [`${head} uniform`, changeHead(bench, "uniform", head)]),
    ...bench.mean.map((head): [string, Partial<Bench>] => [`${head} mean`, changeHead(bench, "mean", head)]),
    ...bench.keep.map((head): [string, Partial<Bench>] => [`only ${head}`, changeHead(bench, "keep", head)]),
    ...bench.layersOff.map((each): [string, Partial<Bench>] => [`layer ${each} off`, { layersOff: bench.layersOff.filter((other) => other !== each) }]),
  ];
  return (
    <section class="removed-list" aria-label="Removed">
      <div class="spread"><h2>Removed</h2>{undo && <button type="button" class="link" data-do="undo" onClick={undo}>undo</button>}</div>
      <div class="chips">
        {chips.map(([name, patch]) => <button type="button" class="change" key={name} aria-label={`${name}: take back`} onClick={() => update(patch)}>{name} ✕</button>)}
        {!isChanged(bench) && <span class="note">Nothing: the model as it is.</span>}
      </div>
      <div class="add">
        <select aria-label="Change" value={action} onChange={(event) => setAction(event.currentTarget.value as Action)}>
          {(Object.keys(ACTION_NAMES) as Action[]).map((each) => <option key={each} value={each}>{ACTION_NAMES[each]}</option>)}
        </select>
        <button type="button" data-do="change-head" disabled={!bench.head} onClick={() => update(changeHead(bench, action, bench.head))}>head {bench.head}</button>
        {action === "off" && <button type="button" data-do="layer-off" disabled={!bench.head} onClick={() => update({ layersOff: bench.layersOff.includes(layer) ? bench.layersOff.filter((each) => each !== layer) : [...bench.layersOff, layer] })}>layer {layer}</button>}
      </div>
    </section>
  );
}
