import express, { type ErrorRequestHandler, type Express } from 'express'
import type { Lease, Locks } from '../../src/index.ts'
import { leaseAnswer } from './lease-answer.ts'

type Close = (month: string, lease: Lease) => Promise<object>

export function service(locks: Locks, close: Close): Express {
  const app = express()
  app.post('/months/:month/close', async (request, response) => {
    const { month } = request.params
    const report = await locks.using(`close ${month}`, { wait: 500 }, lease => close(month, lease))
    response.json(report)
  })
  const refuse: ErrorRequestHandler = (error, _request, response, next) => {
    const answer = leaseAnswer(error)
    if (!answer || response.headersSent) next(error)
    else response.writeHead(answer.status, answer.headers).end(answer.body)
  }
  app.use(refuse) // after the routes
  return app
}
