/** The style of the page, by day and by night. */
export const STYLE = `
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
body { margin: 32px auto; padding: 0 24px; max-width: 1280px }
th, td { text-align: left; vertical-align: top; padding: 4px 16px 4px 0; font-weight: 400 } td p { margin: 0 }
code, .steps { font: 13px/1.6 ui-monospace, monospace }
.steps { overflow-x: auto; white-space: pre; list-style: none; padding: 0 }
.timeline { display: flex; border: 1px solid #8888 } .labels { white-space: nowrap; padding: 0 12px; font-size: 12px }
.plot { overflow-x: auto } svg { display: block } text { font-size: 11px; fill: currentColor }
rect { fill: currentColor } path { stroke: currentColor; stroke-width: 3; fill: none }
.row { color: #8884; stroke-width: 1 } .wait { color: #8888 } .hold { color: #3b82d9 } .fault { color: #e0a03070 }
.overlap, .violated { color: #d33 } .violation { color: #d33; stroke-dasharray: 4 3; stroke-width: 1.5 }
.refused { color: #8e4ec6; stroke-width: 8; stroke-linecap: round } .lost, .inconclusive { color: #c07000 }
.died { color: CanvasText } .passed { color: #18894e }
`
