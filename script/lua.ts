import type { Rolldown } from 'tsdown'

/**
 * Leaves comments and indentation out of the Lua that is shipped: the server gets the script as text, and minifiers
 * leave template strings as they are. Outside of them neither `--` nor indentation says anything to JavaScript.
 */
export function withoutLuaComments(): Rolldown.Plugin {
  return {
    name: 'without-lua-comments',
    transform(code) {
      return /^local /m.test(code) ? { code: code.replace(/^ *(?:--.*\n)?/gm, ''), map: null } : undefined
    },
  }
}
