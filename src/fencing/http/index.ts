export type { AnswerBody } from '../answer.ts'
export type { FenceCallOptions, FenceOptions } from '../fence.ts'
export type { Holder, Mark, Marks, Shown } from '../mark.ts'
export { type Checked, type CheckOptions, checkFence, fenceOf } from './check.ts'
export { fenceHeaders, type RequestFence, type RequestHeaders } from './headers.ts'
export { type MemoryMarksOptions, memoryMarks } from './memory-marks.ts'
export {
  expressFence,
  type FastifyReply,
  fastifyFence,
  type HonoContext,
  honoFence,
  type MiddlewareOptions,
  nodeFence,
  type ServerRequest,
  type ServerResponse,
} from './middleware.ts'
export { type AnsweredResponse, type FenceAnswer, type FenceProblem, staleAnswer, throwIfStale } from './problem.ts'
export { inTurn } from './turn.ts'
