import { statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { expect, test } from 'vitest'
import { isMountPoint, riskyFileSystem } from './mounts.ts'

// As Linux shows them, see proc_pid_mountinfo(5).
const mounts = `
24 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
31 24 0:28 / /tmp rw,nosuid shared:12 - tmpfs tmpfs rw,size=1024k
61 24 0:52 / /mnt/nfs rw,relatime shared:90 - nfs4 10.0.0.2:/export rw,vers=4.2
62 24 0:300 / /mnt/a\\040share rw,relatime - cifs //host/share rw
63 24 0:54 / /mnt/ssh rw,nosuid - fuse.sshfs me@host: rw,user_id=0
65 24 0:57 / /mnt/host rw,relatime - virtiofs host rw
66 24 0:58 / /mnt/c rw,noatime - 9p C:\\134 rw
67 24 0:59 / /mnt/bind rw,nosuid - fuse /data rw,user_id=0
68 24 0:60 / /mnt/desktop rw,nosuid - fuse.grpcfuse grpcfuse rw
64 24 0:55 / /mnt/disk rw,nosuid - fuseblk /dev/sdb1 rw,user_id=0
`

// makedev(3): the minor number's low byte, the major number, the rest of the minor number.
function device(major: bigint, minor: bigint): bigint {
  return (minor & 0xffn) | (major << 8n) | ((minor & ~0xffn) << 12n)
}

test.each([
  [0n, 52n, { type: 'nfs4', kind: 'network' }],
  [0n, 300n, { type: 'cifs', kind: 'network' }],
  [0n, 54n, { type: 'fuse.sshfs', kind: 'network' }],
  [0n, 57n, { type: 'virtiofs', kind: 'shared' }],
  [0n, 58n, { type: '9p', kind: 'shared' }],
  [0n, 59n, { type: 'fuse', kind: 'shared' }],
  [0n, 60n, { type: 'fuse.grpcfuse', kind: 'shared' }],
  [0n, 55n, undefined],
  [0n, 28n, undefined],
  [254n, 0n, undefined],
  [0n, 999n, undefined],
])('the device %i:%i is on %j', (major, minor, found) => {
  expect(riskyFileSystem(device(major, minor), mounts)).toEqual(found)
})

test('a mount point is found, also with a space in its path', () => {
  expect(['/mnt/disk', '/mnt/a share'].map(path => isMountPoint(path, mounts))).toEqual([true, true])
  expect(['/mnt', '/mnt/disk/leases.db', '/mnt/a'].map(path => isMountPoint(path, mounts))).toEqual([
    false,
    false,
    false,
  ])
})

test('the temporary folder of this machine is local', () => {
  expect(riskyFileSystem(statSync(tmpdir(), { bigint: true }).dev)).toBeUndefined()
})
