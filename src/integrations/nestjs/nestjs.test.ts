import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Controller, Get, type INestApplication, Injectable, Module, type Type } from '@nestjs/common'
import { ExpressAdapter } from '@nestjs/platform-express'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import { HealthCheckService, TerminusModule } from '@nestjs/terminus'
import { Test } from '@nestjs/testing'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createLocks, type Locks } from '../../create-locks.ts'
import { currentLease } from '../../current-lease.ts'
import { sqlite } from '../../stores/sqlite/index.ts'
import { InjectLocks, LeaseHealth, LeaseModule, UseLease } from './index.ts'

let folder: string
let other: Locks
let opened: Locks
let app: INestApplication | undefined

const open = (owner: string): Locks => createLocks(sqlite(join(folder, 'leases.db')), { owner, ttl: 10_000 })

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-nestjs-'))
  other = open('other')
  opened = open('nest')
})

afterEach(async () => {
  await app?.close()
  app = undefined
  await Promise.all([other.close(), opened.close()])
  rmSync(folder, { recursive: true, force: true })
})

class Invoices {
  locks!: Locks

  async send(month: string): Promise<{ month: string; name: string | undefined; self: boolean }> {
    await Promise.resolve()
    return { month, name: currentLease()?.name, self: this instanceof Invoices }
  }

  holder(): Promise<string | undefined> {
    return this.locks.inspect('report').then(({ holders: [holder] }) => holder?.owner)
  }
}
decorate(
  Invoices,
  'send',
  UseLease((month: string) => `invoices:${month}`, { wait: 0 }),
)
decorate(Invoices, 'holder', UseLease('report'))
InjectLocks()(Invoices.prototype, 'locks')
Injectable()(Invoices)

class Routes {
  report(): string {
    return `${currentLease()?.name} by ${currentLease()?.owner}`
  }
}
decorate(Routes, 'report', UseLease('route'), Get('report')) // the route is written below: its metadata is copied
Controller()(Routes)

class AppModule {}
Module({
  imports: [LeaseModule.forRoot({ open: () => opened }), TerminusModule],
  providers: [Invoices],
  controllers: [Routes],
})(AppModule)

/** As the compiler does: the lowest decorator first. */
function decorate(type: Type<unknown>, key: string, ...decorators: MethodDecorator[]): void {
  const descriptor = Object.getOwnPropertyDescriptor(type.prototype, key)
  if (!descriptor) throw new Error(`no method ${key}`)
  for (const decorator of decorators.reverse()) decorator(type.prototype, key, descriptor)
  Object.defineProperty(type.prototype, key, descriptor)
}

async function start(module: Type<unknown> = AppModule): Promise<INestApplication> {
  const testing = await Test.createTestingModule({ imports: [module] }).compile()
  app = testing.createNestApplication()
  return app.init()
}

test.each([
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
])('a route runs under a lease on %s, and releases it', async (_, adapter) => {
  const testing = await Test.createTestingModule({ imports: [AppModule] }).compile()
  app = testing.createNestApplication(adapter())
  await app.listen(0, '127.0.0.1')
  expect(await (await fetch(`${await app.getUrl()}/report`)).text()).toBe('route by nest')
  expect((await other.inspect('route')).holders[0]).toBeUndefined()
})

test('a method has its lease, its parameters and its object', async () => {
  const invoices = (await start()).get(Invoices)
  expect(await invoices.send('2026-01')).toEqual({ month: '2026-01', name: 'invoices:2026-01', self: true })
  expect(await invoices.holder()).toBe('nest')
  expect(currentLease()).toBeUndefined()
})

test('a method rejects if another process holds the name', async () => {
  const invoices = (await start()).get(Invoices)
  await using _ = await other.acquire('invoices:2026-01')
  await expect(invoices.send('2026-01')).rejects.toMatchObject({ code: 'BUSY' })
  expect(await invoices.send('2026-02')).toMatchObject({ name: 'invoices:2026-02' })
})

test('the end of the application closes the locks', async () => {
  const invoices = (await start()).get(Invoices)
  await app?.close()
  await expect(invoices.holder()).rejects.toMatchObject({ code: 'CLOSED' })
})

test('locks are made of what a module exports', async () => {
  const settings = Symbol('settings')
  class Settings {}
  Module({ providers: [{ provide: settings, useValue: 'from-settings' }], exports: [settings] })(Settings)
  class Root {}
  const useFactory = async (owner: string): Promise<Locks> => open(owner)
  const leases = LeaseModule.forRootAsync({ imports: [Settings], inject: [settings], useFactory })
  Module({ imports: [leases], providers: [Invoices] })(Root)
  expect(await (await start(Root)).get(Invoices).holder()).toBe('from-settings')
})

test('Terminus reports the store up, and down once it does not serve', async () => {
  const started = await start()
  const health = started.get(LeaseHealth)
  const checks = await started.resolve(HealthCheckService)
  expect(await checks.check([() => health.check('leases')])).toMatchObject({ details: { leases: { status: 'up' } } })
  await opened.close()
  const down = checks.check([() => health.check('leases')])
  await expect(down).rejects.toMatchObject({ response: { details: { leases: { status: 'down', code: 'CLOSED' } } } })
  // The endpoint may be public, and messages name hosts and users.
  expect(await health.check('leases')).toEqual({ leases: { status: 'down', code: 'CLOSED' } })
})

test('mistakes are refused', async () => {
  expect(() => LeaseModule.forRoot({} as never)).toThrow('needs a function')
  expect(() => UseLease('a')(Invoices.prototype, 'locks', undefined as never)).toThrow('decorates methods')
  await expect(new Invoices().holder()).rejects.toThrow('LeaseModule is missing')
})
