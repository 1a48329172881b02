"""How the page looks: light and dark, narrow and wide, on paper."""

LIGHT = """--ink: #1b1f24; --paper: #fff; --soft: #5b6470; --line: #d8dde3; --hue: #1f5fa8;
  --yes: #00695c; --no: #b3400e; --maybe: #7a5d00;"""

STYLE = """
:root { color-scheme: light dark; LIGHT }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8eaed; --paper: #16181c; --soft: #a2abb6; --line: #343a42; --hue: #7fb5f0;
    --yes: #4fc3a8; --no: #ff9d66; --maybe: #e0bd4d; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto;
  max-width: 1080px; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.6rem; margin: 0; } h2 { font-size: 1.3rem; margin: 2.5rem 0 .3rem; border-top: 2px solid var(--line);
  padding-top: 1.5rem; } h3 { font-size: 1.05rem; margin: 2rem 0 .3rem; font-weight: 600; }
h4 { font-size: .95rem; margin: 0 0 .3rem; font-weight: 600; }
p { max-width: 70ch; } .soft { color: var(--soft); font-size: .9rem; }
.notice { border-left: 4px solid var(--hue); padding: .2rem 1rem;
  background: color-mix(in srgb, var(--hue) 9%, transparent); }
nav { display: flex; flex-wrap: wrap; gap: .2rem .75rem; margin: 1rem 0; padding: .5rem 0; font-size: .85rem;
  background: var(--paper); border-bottom: 1px solid var(--line); }
@media (min-width: 601px) and (min-height: 500px) { nav { position: sticky; top: 0; z-index: 1; }
  html { scroll-padding-top: 5rem; } }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 26.5rem), 1fr)); gap: 1.5rem 2rem; }
.figures.grids { grid-template-columns: repeat(auto-fill, minmax(min(100%, 19rem), 1fr)); }
figure { margin: 0; max-width: 100%; min-width: 0; }
code { font-size: .9em; background: color-mix(in srgb, var(--soft) 14%, transparent); padding: 0 .2em; }
figcaption { max-width: 420px; }
svg { max-width: 100%; height: auto; } svg text { font-size: 10px; fill: var(--soft); }
.mark { fill: var(--hue); } .curve { fill: none; stroke: var(--hue); stroke-width: 2; }
.band { fill: var(--hue); opacity: .18; } .baseline { fill: none; stroke: var(--soft); stroke-width: 1.5; }
.beside { fill: var(--soft); opacity: .12; } .rule { stroke: var(--line); stroke-width: 1; }
.leader { fill: none; stroke: var(--soft); stroke-width: .5; }
.board > details { margin: 0; border-bottom: 1px solid var(--line); } .board summary { display: flex; gap: 1rem;
  padding: .35rem 0; cursor: pointer; align-items: baseline; } .board .opened { margin: .2rem 0 1rem 9.7rem; }
.board summary:hover .finding { text-decoration: underline; } .finding { flex: 1; }
.board summary::before { content: "▸"; width: .8rem; margin-right: -.6rem; color: var(--soft); }
.board [open] > summary::before { content: "▾"; }
.paper { flex: 0 0 auto; color: var(--soft); font-size: .85rem; }
.board .opened p { margin: .3rem 0; }
.texts dl { display: grid; grid-template-columns: 3rem 1fr; margin: .2rem 0 .8rem; font-size: .9rem; max-width: 50rem; }
.texts dt { grid-column: 1; color: var(--soft); } .texts dd { grid-column: 2; margin: 0; }
.whole { white-space: nowrap; } .texts b { font-weight: 600; font-variant-numeric: tabular-nums; margin-right: .3rem; }
.verdict { flex: 0 0 7.5rem; font-size: .85rem; font-weight: 600; }
.verdict::before { display: inline-block; width: 1.3em; }
.holds::before { content: "✓"; } .fails::before { content: "✗"; } .inconclusive::before { content: "~"; }
.not-applicable::before { content: "–"; } .holds { color: var(--yes); } .fails { color: var(--no); }
.inconclusive { color: var(--maybe); } .not-applicable { color: var(--soft); font-weight: 400; }
a { color: var(--hue); }
@media (max-width: 600px) { .board .opened { margin-left: 0; } .board summary { flex-wrap: wrap; gap: 0 1rem; }
  .verdict { flex: 1 0 auto; } .finding { flex: 1 0 100%; order: 1; } }
@media print { nav { display: none; } .board summary::before { visibility: hidden; }
  .board details::details-content { content-visibility: visible; } details, figure { break-inside: avoid; }
  :root { LIGHT } }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
td, th { text-align: right; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
td:first-child, th:first-child, .word { text-align: left; } th { white-space: normal; vertical-align: bottom; }
td.long { white-space: normal; min-width: 20rem; text-align: left; vertical-align: top; }
details { margin: 1rem 0; } pre { white-space: pre-wrap;
  overflow-wrap: anywhere; font-size: .8rem; }
""".replace("LIGHT", LIGHT)
