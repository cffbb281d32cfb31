import fastify, { type FastifyInstance } from 'fastify'
import type { Lease, Locks } from '../../src/index.ts'
import { leaseAnswer } from './lease-answer.ts'

type Close = (month: string, lease: Lease) => Promise<object>

export function service(locks: Locks, close: Close): FastifyInstance {
  const app = fastify()
  app.post<{ Params: { month: string } }>('/months/:month/close', async ({ params: { month } }) => {
    return locks.using(`close ${month}`, { wait: 500 }, lease => close(month, lease))
  })
  app.setErrorHandler((error, _request, reply) => {
    const answer = leaseAnswer(error)
    if (!answer) throw error
    return reply.code(answer.status).headers(answer.headers).send(answer.body)
  })
  return app
}
