// Labels of heads on tags: what the head does, and the number that says how clearly.
import { formatScore } from "./numbers";
import type { HeadLabel } from "./payload";

export function labelText({ label, score }: HeadLabel): string {
  return score === null ? label : `${label} ${formatScore(score)}`;
}
