// Number formats: no more digits than the stored values have or a reader needs.

/** One number; `step` is the step in which weights are stored, 0 if they are exact. */
export function formatWeight(value: number, step = 0): string {
  if (value !== value) return "·";
  const size = Math.abs(value);
  if (size < step / 2) return `< ${upTo(step)}`;
  if (size === 0) return "0";
  if (size < 0.0005) return value.toExponential(1);
  if (size < 0.01) return value.toFixed(4); // of hundreds of tokens each has a few thousandths
  return size >= 100 ? value.toFixed(0) : size >= 10 ? value.toFixed(1) : value.toFixed(3);
}

/** All digits that are stored. */
export function formatExact(value: number, step = 0): string {
  if (value !== value) return "not shown";
  if (Math.abs(value) < step / 2) return `< ${upTo(step)}`;
  return String(Number(value.toPrecision(step ? 4 : 7)));
}

/** One format for all numbers of a column whose largest absolute value is `max`: the same number of decimals. */
export function columnFormat(max: number, step = 0): (value: number) => string {
  const decimals = max >= 10 ? 1 : max >= 0.05 ? 3 : max >= 0.005 ? 4 : max >= 0.0005 ? 5 : 7;
  const smallest = Math.max(10 ** -decimals, step);
  return (value) => {
    if (value !== value) return "·";
    if (value === 0 && !step) return (0).toFixed(decimals);
    return Math.abs(value) < smallest / 2 ? `< ${upTo(smallest)}` : value.toFixed(decimals);
  };
}

/** A bound with one digit, rounded up. */
function upTo(bound: number): string {
  const power = 10 ** Math.floor(Math.log10(bound) + 1e-9);
  const rounded = Math.ceil(bound / power - 1e-6) * power;
  return bound >= 0.001 ? String(Number(rounded.toPrecision(1))) : rounded.toExponential(0).replace("e-", "e-");
}

/** For a cell of a table whose largest absolute value is `max`: the same decimals in all cells, `<.01` for what they cannot show. */
export function formatCell(value: number, max: number, step = 0): string {
  if (value !== value) return "·";
  if (value === 0 && !step) return "0";
  if (max < 0.0005) return value.toExponential(0);
  const decimals = Math.abs(value) >= 10 ? 0 : max < 0.02 ? 4 : 2;
  const smallest = 10 ** -decimals;
  if (Math.abs(value) < smallest / 2) return value < 0 ? "≈0" : `<${smallest.toFixed(decimals).slice(1)}`;
  return value.toFixed(decimals).replace(/^(-?)0\./, "$1.");
}

export function formatPercent(fraction: number): string {
  const value = 100 * fraction;
  if (value > 99.95) return "100 %";
  return value < 0.1 && value > 0 ? "under 0.1 %" : `${value.toFixed(1)} %`;
}

/** A proportion on a tag: a whole number, and never 100 for less than all. */
export function formatScore(score: number): string {
  return score < 1 && score >= 0.995 ? "> 99\u00a0%" : `${Math.round(100 * score)}\u00a0%`;
}
