import { Hono } from 'hono'
import type { Lease, Locks } from '../../src/index.ts'
import { leaseAnswer } from './lease-answer.ts'

type Close = (month: string, lease: Lease) => Promise<object>

export function service(locks: Locks, close: Close): Hono {
  const app = new Hono()
  app.post('/months/:month/close', async context => {
    const month = context.req.param('month')
    return context.json(await locks.using(`close ${month}`, { wait: 500 }, lease => close(month, lease)))
  })
  app.onError(error => {
    const answer = leaseAnswer(error)
    if (!answer) throw error
    return new Response(answer.body, answer)
  })
  return app
}
