import { readFileSync } from 'node:fs'

// Network file systems by their names in the kernel.
const NETWORK = new Set([
  ...['nfs', 'nfs4', 'cifs', 'smb3', 'smbfs', 'ncpfs', 'afs', 'coda', 'ceph', 'lustre', 'beegfs', 'gpfs', 'orangefs'],
  ...['fuse.sshfs', 'fuse.glusterfs', 'fuse.ceph', 'fuse.ceph-fuse', 'fuse.s3fs', 'fuse.gcsfuse', 'fuse.rclone'],
  ...['fuse.davfs', 'fuse.juicefs', 'fuse.seaweedfs', 'fuse.mount-s3', 'fuse.blobfuse2', 'fuse.curlftpfs'],
])

// Folders of another kernel, such as those of the host in a virtual machine. `fuse` and `fuse.*` belong to these: a program
// that does not go through the process behind FUSE does not see the locks and the shared memory of programs that do.
const SHARED = new Set(['9p', 'virtiofs', 'vboxsf', 'prl_fs', 'vmhgfs', 'drvfs', 'fakeowner', 'fuse'])

/** A file system on which SQLite's locks and shared memory may not reach all processes that use a file. */
export interface RiskyFileSystem {
  readonly type: string
  /** `network`: locks do not reach other machines. `shared`: they may not reach another kernel, or another mount. */
  readonly kind: 'network' | 'shared'
}

/** The file system with this device number, if it is risky. It can be found on Linux only. */
export function riskyFileSystem(device: bigint, mounts: string = linuxMounts()): RiskyFileSystem | undefined {
  // A file system without a block device has the major number 0. The minor number is split around it, see makedev(3).
  const major = ((device >> 8n) & 0xfffn) | ((device >> 32n) & ~0xfffn)
  const minor = (device & 0xffn) | ((device >> 12n) & 0xffffff00n)
  for (const line of mounts.split('\n')) {
    const [before = '', after = ''] = line.split(' - ')
    const type = after.split(' ')[0] ?? ''
    const isIt = before.split(' ')[2] === `${major}:${minor}`
    if (isIt && NETWORK.has(type)) return { type, kind: 'network' }
    if (isIt && (SHARED.has(type) || type.startsWith('fuse.'))) return { type, kind: 'shared' }
  }
  return undefined
}

/** Is a file system mounted at exactly this path? The path must contain no links. This works on Linux only. */
export function isMountPoint(path: string, mounts: string = linuxMounts()): boolean {
  const escaped = path.replace(/[ \t\n\\]/g, each => `\\${each.charCodeAt(0).toString(8).padStart(3, '0')}`)
  return mounts.split('\n').some(line => line.split(' ')[4] === escaped)
}

function linuxMounts(): string {
  try {
    return readFileSync('/proc/self/mountinfo', 'utf8')
  } catch {
    return ''
  }
}
