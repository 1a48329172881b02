// A small card at a point of a picture, inside its bounds where that is possible; also read by screen readers.

interface Props {
  x: number;
  y: number;
  width: number; // of the picture
  height: number;
  lines: string[]; // the first is a heading
}

export function Tip({ x, y, width, height, lines }: Props) {
  const across = x > width / 2 ? { right: `${Math.max(0, width - x)}px` } : { left: `${Math.max(0, x)}px` };
  const down = y > height * 0.66 ? { bottom: `${height - y + 26}px` } : { top: `${y + 8}px` };
  return (
    <div class="tip" role="status" style={{ ...across, ...down }}>
      <b><bdi>{lines[0]}</bdi></b>
      {lines.slice(1).map((line) => <span key={line}><bdi>{line}</bdi></span>)}
    </div>
  );
}
