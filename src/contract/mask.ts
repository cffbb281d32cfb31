/**
 * Hides the passwords of all URLs in the text, in linear time. A password ends at the last `@` of a word, because it may
 * contain an `@` that is not encoded.
 */
export function mask(text: string): string {
  return maskPlain(text).replace(
    /([?&]direct=)([^\s&#]*)/gi,
    (_, option: string, url: string) => option + maskEncoded(url),
  )
}

function maskPlain(text: string): string {
  return text.replace(/\S+/g, maskWord).replace(/([?&]password=)[^\s&#]*/gi, '$1***')
}

/** Hides the password in an encoded URL, such as the option `direct` of PostgreSQL. */
function maskEncoded(url: string): string {
  try {
    const plain = decodeURIComponent(url)
    const masked = maskPlain(plain)
    return masked === plain ? url : encodeURIComponent(masked)
  } catch {
    return '***' // A text that cannot be decoded may have a password anywhere.
  }
}

function maskWord(word: string): string {
  if (/^[a-z]+:\/\/\[user:password@\]/.test(word)) return word // the syntax of a URL, in an error
  const end = word.lastIndexOf('@')
  const [head] = (end > 0 && /^.*?[a-z0-9+.-]:\/\/[^/:]*:/is.exec(word.slice(0, end))) || []
  if (head === undefined) return word.replace(/^(.*?natss?:\/\/)[^/]*(?=@)/is, '$1***') // a token, without a colon
  // The @ may be in an option, where it need not be encoded. Then the rest of the password follows.
  const option = word.slice(Math.max(word.lastIndexOf('&', end), word.lastIndexOf('#', end)) + 1, end)
  const tail = word.slice(end)
  return `${head}***${/(^|\?)password=/i.test(option) ? tail.replace(/^[^&#]*/, '') : tail}`
}
