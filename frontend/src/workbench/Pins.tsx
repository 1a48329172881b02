// Pins: kept addresses in the browser's storage. One is compared with the page as B; all become an offline page.
import { useState } from "preact/hooks";
import { download } from "../figure";
import { type Bench, fromAddress, liveRequest, toAddress, viewHash } from "./address";
import { postText } from "./client";
import { comparedBench, type Report, type UpdateBench } from "./use";

const STORAGE = "bertology-pins";

export interface Pin {
  address: string;
  caption: string;
}

export function usePins(): [Pin[], (pins: Pin[]) => void] {
  const [pins, setPins] = useState<Pin[]>(() => {
    try {
      return JSON.parse(localStorage.getItem(STORAGE) ?? "[]") as Pin[];
    } catch {
      return [];
    }
  });
  const write = (next: Pin[]) => {
    setPins(next);
    try {
      localStorage.setItem(STORAGE, JSON.stringify(next));
    } catch {
      // A browser without storage keeps them until the page is closed.
    }
  };
  return [pins, write];
}

interface Props {
  bench: Bench;
  update: UpdateBench;
  pins: Pin[];
  setPins: (pins: Pin[]) => void;
  report: Report;
}

export function Pins({ bench, update, pins, setPins, report }: Props) {
  const [isBusy, setBusy] = useState(false);
  const own = (address: string) => toAddress({ ...fromAddress(address), panel: "card", query: "", against: "" });
  const save = () => {
    setBusy(true);
    const requests = pins.map(({ address, caption }) => {
      const pinned = fromAddress(address);
      const other = comparedBench(pinned);
      return { live: liveRequest(pinned, false), against: other ? liveRequest(other, false) : null, state: viewHash(pinned), caption };
    });
    postText("keep", { title: "bertology: pins", pins: requests }).then((page) => download("pins.html", new Blob([page], { type: "text/html" })), report).finally(() => setBusy(false));
  };
  return (
    <section class="pins" aria-label="Pins">
      <h2 class="title">Pins</h2>
      {!pins.length && <p class="note">Pin what you see (p) to keep it, to compare it with something else, or to save it as a page that opens offline. Pins stay in this browser.</p>}
      <ul class="pins-list">
        {pins.map((pin, index) => (
          <li key={pin.address}>
            <button type="button" class="corpus-line" data-pin={index} onClick={() => update({ ...fromAddress(pin.address), panel: "pins" })}>{pin.caption}</button>
            <div class="row">
              <button type="button" data-do="compare" aria-pressed={bench.against === own(pin.address)} onClick={() => update({ against: bench.against === own(pin.address) ? "" : own(pin.address), view: "difference" })}>Compare as B</button>
              <button type="button" aria-label={`Remove pin ${index + 1}`} onClick={() => setPins(pins.filter((each) => each !== pin))}>Remove</button>
            </div>
          </li>
        ))}
      </ul>
      {pins.length > 0 && <button type="button" class="primary" data-do="offline" disabled={isBusy} onClick={save}>{isBusy ? "Being written …" : `Save ${pins.length === 1 ? "it" : `all ${pins.length}`} as an offline page`}</button>}
    </section>
  );
}
