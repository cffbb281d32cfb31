import { readFileSync } from 'node:fs'

// Network file systems, by their names in the kernel. Not listed: file systems on which locks and shared memory work for
// all users, such as 9p and virtiofs inside one guest, and clustered block storage.
const NETWORK = new Set([
  ...['nfs', 'nfs4', 'cifs', 'smb3', 'smbfs', 'ncpfs', 'afs', 'coda', 'ceph', 'lustre', 'beegfs', 'gpfs', 'orangefs'],
  ...['fuse.sshfs', 'fuse.glusterfs', 'fuse.ceph', 'fuse.ceph-fuse', 'fuse.s3fs', 'fuse.gcsfuse', 'fuse.rclone'],
  ...['fuse.davfs', 'fuse.juicefs', 'fuse.seaweedfs', 'fuse.mount-s3', 'fuse.blobfuse2', 'fuse.curlftpfs'],
])

/**
 * The type of the file system with this device number if it is a network file system. The locks and the shared memory of
 * SQLite do not reach other machines there. Known on Linux only.
 */
export function networkFileSystem(device: bigint, mounts: string = linuxMounts()): string | undefined {
  // A file system without a block device has the major number 0. The minor number is split around it, see makedev(3).
  const major = ((device >> 8n) & 0xfffn) | ((device >> 32n) & ~0xfffn)
  const minor = (device & 0xffn) | ((device >> 12n) & 0xffffff00n)
  for (const line of mounts.split('\n')) {
    const [before = '', after = ''] = line.split(' - ')
    const type = after.split(' ')[0] ?? ''
    if (before.split(' ')[2] === `${major}:${minor}` && NETWORK.has(type)) return type
  }
  return undefined
}

/** Is something mounted at exactly this path? Without links in it; known on Linux only. */
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
