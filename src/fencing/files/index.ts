export type { Holder } from '../mark.ts'
export type { FileFenceOptions } from './place.ts'
export { type FileData, fencedTouch, fencedWrite } from './write.ts'
