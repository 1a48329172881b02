// The page of `bertology serve`: renders the workbench into #workbench.
import { render } from "preact";
import palette from "./palette.css?inline";
import style from "./style.css?inline";
import views from "./views/views.css?inline";
import { Workbench } from "./workbench/Workbench";
import own from "./workbench/workbench.css?inline";

const sheet = new CSSStyleSheet();
sheet.replaceSync(palette + style + views + own);
document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
render(<Workbench />, document.querySelector("#workbench")!);
