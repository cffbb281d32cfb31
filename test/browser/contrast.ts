import type { Page } from 'playwright-core'

/** The text of the page with the lowest contrast, as WCAG 2 counts it. Colours must have no alpha, as in our style. */
export function lowestContrast(page: Page): Promise<{ text: string; ratio: number }> {
  return page.evaluate(() => {
    const rgb = (colour: string): number[] => (colour.match(/[\d.]+/g) ?? []).map(Number)
    const luminance = (colour: string): number => {
      const [r = 0, g = 0, b = 0] = rgb(colour).map(value => {
        const part = value / 255
        return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
      })
      return 0.2126 * r + 0.7152 * g + 0.0722 * b
    }
    const groundOf = (element: Element | null): string => {
      for (let at = element; at; at = at.parentElement) {
        const { backgroundColor } = getComputedStyle(at)
        if (rgb(backgroundColor)[3] !== 0) return backgroundColor
      }
      return 'rgb(255, 255, 255)'
    }
    let lowest = { text: '', ratio: 21 }
    for (const element of document.body.querySelectorAll<HTMLElement>('*')) {
      const isHint = element instanceof HTMLInputElement && element.value === ''
      const ofChildren = [...element.childNodes].map(({ nodeType, nodeValue }) => (nodeType === 3 ? nodeValue : ''))
      const text = isHint ? element.placeholder : ofChildren.join('')
      if (text.trim() === '' || !element.checkVisibility() || element.tagName === 'SCRIPT') continue
      const { color } = getComputedStyle(element, isHint ? '::placeholder' : null)
      const [a = 0, b = 0] = [color, groundOf(element)].map(luminance).sort((x, y) => y - x)
      const ratio = (a + 0.05) / (b + 0.05)
      if (ratio < lowest.ratio) lowest = { text, ratio }
    }
    return lowest
  })
}
