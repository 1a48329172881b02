// Search without a server: browsers refuse workers on file:// pages, so a hidden frame runs the search script instead.
// The theme looks for the name IFrameWorker, and its search script awaits importScripts.
class IFrameWorker extends EventTarget {
  constructor(url) {
    super();
    const frame = document.createElement("iframe");
    frame.hidden = true;
    document.body.append(frame);
    const inner = frame.contentWindow;
    inner.document.open();
    inner.document.write("<!doctype html><title>search</title><body>");
    inner.document.close();
    const load = (source) => new Promise((resolve, reject) => {
      const script = inner.document.createElement("script");
      Object.assign(script, { src: source, onload: resolve, onerror: reject });
      inner.document.body.append(script);
    });
    inner.importScripts = (...sources) => sources.reduce((last, source) => last.then(() => load(source)), Promise.resolve());
    inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
    this.window = inner;
    this.loaded = load(url);
  }

  postMessage(data) {
    this.loaded.then(() => this.window.dispatchEvent(new MessageEvent("message", { data })));
  }
}
window.IFrameWorker = IFrameWorker;
if (location.protocol === "file:") window.Worker = IFrameWorker;
