// A page in a frame says how high it is; its frame follows.
addEventListener("message", (event) => {
  const height = event.data?.bertologyHeight;
  if (!Number.isFinite(height)) return;
  for (const frame of document.querySelectorAll("iframe.cell-frame")) {
    if (frame.contentWindow === event.source) frame.style.height = `${Math.min(Math.max(height, 120), 4000)}px`;
  }
});
