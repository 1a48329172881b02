// A text of the corpus with the words that matter in it; a click opens it in the workbench.
import type { LinkExample } from "../api";
import type { UpdateBench } from "./use";

const AROUND = 5; // words shown on either side

interface Props {
  example: number;
  words: string[];
  strong: number; // the word that attends, or that was found
  target?: number; // the word attended to
  value?: string;
  open: UpdateBench;
}

export function CorpusLine({ example, words, strong, target, value, open }: Props) {
  const [low, high] = [Math.min(strong, target ?? strong), Math.max(strong, target ?? strong)];
  const [first, last] = [Math.max(0, low - AROUND), Math.min(words.length, high + AROUND + 1)];
  return (
    <li>
      <button type="button" class="corpus-line" title={`Open text ${example + 1}: ${words.join(" ")}`} onClick={() => open({ example, edits: [], token: -1 })}>
        {first > 0 && "… "}
        {words.slice(first, last).map((word, index) => {
          const at = first + index;
          return <span key={at}>{at === strong ? <b>{word}</b> : at === target ? <u>{word}</u> : word} </span>;
        })}
        {last < words.length && "…"}
      </button>
      {value && <span class="value">{value}</span>}
    </li>
  );
}

export function LinkLines({ links, open }: { links: LinkExample[]; open: UpdateBench }) {
  return <ul class="corpus-lines">{links.map((link, index) => <CorpusLine key={`${link.example} ${link.source} ${index}`} example={link.example} words={link.words} strong={link.source} target={link.target} value={link.weight.toFixed(2)} open={open} />)}</ul>;
}
