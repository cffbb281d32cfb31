import { execFileSync } from 'node:child_process'
import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { newFolder } from '../../../../lab/servers/folder.ts'

/** The files of a key and of a certificate that is its own authority, for these names of the server: `IP:127.0.0.1`. */
export function certificateFor(names: string): { key: string; cert: string } {
  const folder = newFolder('certificate')
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const subject = ['-subj', '/CN=server', '-addext', `subjectAltName=${names}`]
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  execFileSync('openssl', ['req', '-x509', '-days', '2', ...curve, '-keyout', key, '-out', cert, ...subject], {
    stdio: 'pipe',
  })
  chmodSync(folder, 0o755)
  for (const path of [key, cert]) chmodSync(path, 0o644)
  return { key, cert }
}
