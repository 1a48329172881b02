// The height that is left for a picture on the screen.
import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

const MARGIN = 14;

/** Pixels from the top of the element to the end of the window; in a long page, most of the window. */
export function useHeight(element: RefObject<HTMLElement | null>, minimum: number, dependencies: unknown[]): number {
  const [height, setHeight] = useState(minimum);
  useLayoutEffect(() => {
    const measure = () => {
      if (!element.current) return;
      const top = element.current.getBoundingClientRect().top + window.scrollY;
      const left = top < 0.55 * window.innerHeight ? window.innerHeight - top - MARGIN : 0.85 * window.innerHeight;
      setHeight(Math.max(minimum, Math.floor(left)));
    };
    measure();
    window.addEventListener("resize", measure);
    return () => window.removeEventListener("resize", measure);
  }, dependencies);
  return height;
}
