export type { FenceCallOptions } from '../fence.ts'
export type { Holder, Mark } from '../mark.ts'
export { type HttpObjectsOptions, httpObjects, type ObjectRequest, type ObjectResponse } from './http.ts'
export {
  type FencedObject,
  type ObjectFence,
  type ObjectFenceOptions,
  type ObjectMarks,
  objectFence,
} from './object-fence.ts'
export type { Objects, ReadObject } from './objects.ts'
export { type S3Client, s3Objects } from './s3.ts'
