// Number formats: no more digits than the quantised values have or a reader needs.

export function formatWeight(value: number): string {
  if (value !== value) return "·";
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size < 0.0005) return value.toExponential(1);
  if (size < 0.01) return value.toFixed(4); // of hundreds of tokens each has a few thousandths
  return size >= 100 ? value.toFixed(0) : size >= 10 ? value.toFixed(1) : value.toFixed(3);
}

/** For a cell of a table whose largest absolute value is `max`. */
export function formatCell(value: number, max: number): string {
  if (value !== value) return "·";
  if (value === 0) return "0";
  if (max < 0.0005) return value.toExponential(0);
  return value.toFixed(Math.abs(value) >= 10 ? 0 : max < 0.02 ? 4 : 2).replace(/^(-?)0\./, "$1.");
}

export function formatPercent(fraction: number): string {
  const value = 100 * fraction;
  if (value > 99.95) return "100 %";
  return value < 0.1 && value > 0 ? "under 0.1 %" : `${value.toFixed(1)} %`;
}
