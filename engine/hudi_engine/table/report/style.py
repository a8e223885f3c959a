"""What the page brings for looks and sorting; both are named by their hashes in its content security policy."""

from __future__ import annotations

CSS = """
:root{color-scheme:light dark;--bg:#fff;--card:#f6f8fa;--text:#1c2128;--soft:#57606a;--line:#d5dbe1;
--ink1:#0b5cad;--ink2:#8cbdec;--ink3:#6e7781;--on:#fff}
@media (prefers-color-scheme:dark){:root{--bg:#0f1318;--card:#181e25;--text:#e5ebf1;--soft:#9ba7b3;--line:#2f3843;
--ink1:#5aa7f5;--ink2:#2a5c92;--ink3:#a3adb8;--on:#0f1318}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--text);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1120px;margin:0 auto;padding:28px 20px 48px}
h1{font-size:28px;line-height:1.2;margin:0;overflow-wrap:anywhere}
h2{font-size:19px;margin:40px 0 14px;padding-bottom:6px;border-bottom:1px solid var(--line)}
h3{font-size:15px;margin:0 0 4px;display:flex;gap:10px;align-items:center;text-transform:capitalize}
p{margin:6px 0}
code{font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-wrap:anywhere}
.place,.note,small,dt,.under,.scale,footer{color:var(--soft)}
.note,footer{font-size:13px}
dl{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:10px 20px;margin:16px 0 0}
dt{font-size:12px}dd{margin:0;overflow-wrap:anywhere}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(160px,1fr));gap:12px;margin-top:24px}
.figures div,article{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:12px 14px}
.figures b{display:block;font-size:24px;line-height:1.25;font-variant-numeric:tabular-nums}
.figures span{display:block;font-weight:600}
small{font-size:12px}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(260px,1fr));gap:12px;align-items:start}
.badge{font-size:12px;line-height:18px;padding:0 8px;border:1px solid var(--soft);border-radius:10px;color:var(--soft);
text-transform:none}
.badge.due{background:var(--ink1);border-color:var(--ink1);color:var(--on)}
summary{cursor:pointer;padding:4px 0}
ul{margin:4px 0;padding-left:18px;max-height:320px;overflow:auto}
#history,#files{display:grid;grid-template-columns:1fr 1fr;gap:28px 36px;align-items:start}
#history>h2,#files>h2,.wide,#history>p{grid-column:1/-1}
#history>h2,#files>h2{margin-bottom:-10px}
section>*{min-width:0}
figure{margin:0}
figcaption{font-weight:600;margin-bottom:10px}
.legend{display:flex;margin-top:6px;flex-wrap:wrap;gap:2px 16px;font-weight:400;font-size:13px;color:var(--soft)}
.legend>span{display:inline-flex;align-items:center;gap:6px}
.legend svg{width:11px;height:11px;flex:none}
.plot{display:grid;grid-template-columns:auto 1fr;gap:0 8px}
.plot svg{display:block;width:100%;height:180px}
.scale{display:flex;flex-direction:column;justify-content:space-between;height:198px;margin:-9px 0;
text-align:right;line-height:18px}
.scale,.under{font-size:12px;font-variant-numeric:tabular-nums}
.under{display:flex;justify-content:space-between;gap:8px;margin-top:4px}
.lane{display:grid;grid-template-columns:132px 1fr 64px;gap:10px;align-items:center;font-size:13px;line-height:24px}
.lane svg,.split>svg{display:block;width:100%;height:14px;background:var(--card)}
.lane span:first-child{overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.under.laned{margin:2px 74px 0 142px}
.split>svg{height:24px;margin-bottom:8px}
rect.ink1{fill:var(--ink1)}rect.ink2{fill:var(--ink2)}rect.ink3{fill:var(--ink3)}
svg line{stroke:var(--line);vector-effect:non-scaling-stroke}
.scroll{overflow:auto;max-height:560px;border:1px solid var(--line);border-radius:8px;margin:8px 0 20px}
table{border-collapse:collapse;width:100%;font-size:13px;font-variant-numeric:tabular-nums}
th,td{padding:5px 10px;text-align:left;white-space:nowrap;border-bottom:1px solid var(--line)}
td{max-width:420px;overflow:hidden;text-overflow:ellipsis}
tbody tr:last-child td{border-bottom:0}
th{position:sticky;top:0;background:var(--card);font-weight:600}
.n{text-align:right}
th button{all:unset;cursor:pointer;font-weight:600}
th button:focus-visible,.scroll:focus-visible,summary:focus-visible{outline:2px solid var(--ink1);outline-offset:2px}
th[aria-sort=ascending] button::after{content:" \\2191"}
th[aria-sort=descending] button::after{content:" \\2193"}
footer{margin-top:36px;padding-top:10px;border-top:1px solid var(--line)}
@media (max-width:760px){main{padding:18px 14px 32px}#history,#files{grid-template-columns:minmax(0,1fr)}
.figures{grid-template-columns:1fr 1fr}.lane{grid-template-columns:104px 1fr 48px}.under.laned{margin:2px 58px 0 114px}
.figures b{font-size:20px}th,td{padding:6px 9px}}
@media print{.scroll{max-height:none;overflow:visible}}
"""

SCRIPT = """
for (const button of document.querySelectorAll("th button")) button.addEventListener("click", () => {
  const head = button.parentNode, body = head.closest("table").tBodies[0];
  const place = head.cellIndex, down = head.getAttribute("aria-sort") === "ascending";
  const key = row => { const cell = row.cells[place]; return "v" in cell.dataset ? Number(cell.dataset.v) : cell.textContent };
  const order = (a, b) => a === b ? 0 : (a < b) === down ? 1 : -1;
  const rows = [...body.rows].map(row => [key(row), row]).sort((a, b) => order(a[0], b[0]));
  for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  body.append(...rows.map(pair => pair[1]));
});
"""
