export function ms(time: number): string {
  return `${number(time)} ms`
}

/** `58,800` */
export function number(value: number): string {
  return Math.round(value).toLocaleString('en')
}

/** `1.250 s` */
export function seconds(at: number): string {
  return `${(at / 1_000).toFixed(3)} s`
}
