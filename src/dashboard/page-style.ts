import { NAME_STYLE } from './page-name.ts'
import { OVERVIEW_STYLE } from './page-overview.ts'

const COMMON = `
:root { color-scheme: light dark; --ground: light-dark(#fff, #14171c); --soft: light-dark(#f4f6f8, #1d2229);
  --line: light-dark(#dde1e6, #313842); --ink: light-dark(#1c2128, #e6e9ef); --dim: light-dark(#5b6472, #9aa4b2);
  --old: light-dark(#666d77, #858d99); --bad: light-dark(#b3261e, #ff8a80); --warn: light-dark(#8a5200, #eab464);
  --ok: light-dark(#2e7d4f, #63c58c) }
* { box-sizing: border-box } [hidden] { display: none !important }
body { margin: 0 auto; max-width: 76rem; padding: 1rem; font: 16px/1.5 system-ui, sans-serif;
  background: var(--ground); color: var(--ink) }
header { display: flex; flex-wrap: wrap; justify-content: space-between; align-items: baseline; gap: 0 1rem }
h1 { font-size: 1.25rem; margin: 0 } h2 { font-size: 1rem; margin: 1.5rem 0 .5rem }
header p, dt, .dim { color: var(--dim); margin: 0 } header p { overflow-wrap: anywhere }
p.bad, .bad { color: var(--bad) }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .75rem; margin: 0 0 1rem }
dl div { border: 1px solid var(--line); border-radius: .5rem; padding: .5rem .75rem }
dt { font-size: .8rem } dd { margin: 0; font-size: 1.25rem; overflow-wrap: anywhere }
input, select, button { font: inherit; color: inherit; background: transparent; border: 1px solid var(--dim);
  border-radius: .4rem; padding: .35rem .6rem; max-width: 100% }
button.name { border: 0; padding: 0; text-align: left; text-decoration: underline; cursor: pointer; overflow-wrap: anywhere }
:focus-visible { outline: 3px solid light-dark(#1f5fd0, #8ab4ff); outline-offset: 2px }
li { overflow-wrap: anywhere } ol, ul { margin: 0; padding-left: 1.5rem }
`

/** The style of the page, light and dark. */
export const STYLE: string = COMMON + OVERVIEW_STYLE + NAME_STYLE
