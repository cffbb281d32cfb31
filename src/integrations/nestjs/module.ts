import {
  type DynamicModule,
  type FactoryProvider,
  Inject,
  Injectable,
  Module,
  type ModuleMetadata,
  type OnApplicationShutdown,
} from '@nestjs/common'
import { invalid } from '../../contract/check.ts'
import type { Locks } from '../../create-locks.ts'
import { LeaseHealth } from './health.ts'
import { LOCKS } from './token.ts'

type Opened = Locks | Promise<Locks>

export interface LeaseModuleOptions {
  /** Makes the locks, such as `() => connect(url)`. Called once, when the application starts. */
  readonly open: () => Opened
}

/** The options of an asynchronous module of Nest. */
export interface LeaseModuleAsyncOptions {
  /** The modules that export what `inject` names. */
  readonly imports?: NonNullable<ModuleMetadata['imports']>
  /** What `useFactory` receives. */
  readonly inject?: NonNullable<FactoryProvider['inject']>
  // biome-ignore lint/suspicious/noExplicitAny: its parameters are what `inject` names
  readonly useFactory: (...dependencies: any[]) => Opened
}

/**
 * Locks for all of a Nest application. `@InjectLocks()` and `LeaseHealth` work in every module. The locks are closed in
 * `onApplicationShutdown`, which is after the last HTTP request: call `app.enableShutdownHooks()`.
 */
// biome-ignore lint/complexity/noStaticOnlyClass: Nest expects a class
export class LeaseModule {
  /** Throws `INVALID_ARGUMENT`. What `open` throws ends the start of the application. */
  static forRoot({ open }: LeaseModuleOptions): DynamicModule {
    return LeaseModule.forRootAsync({ useFactory: open })
  }

  /** The same, with dependencies. Throws `INVALID_ARGUMENT`. */
  static forRootAsync({ imports, inject, useFactory }: LeaseModuleAsyncOptions): DynamicModule {
    if (typeof useFactory !== 'function')
      throw invalid('LeaseModule needs a function that makes locks, such as { open: () => connect(url) }')
    const locks: FactoryProvider = { provide: LOCKS, inject: inject ?? [], useFactory }
    return {
      module: LeaseModule,
      global: true,
      imports: imports ?? [],
      providers: [locks, Closing, LeaseHealth],
      exports: [LOCKS, LeaseHealth],
    }
  }
}

/** Injects the locks of `LeaseModule`: `constructor(@InjectLocks() private readonly locks: Locks)`. */
export function InjectLocks(): PropertyDecorator & ParameterDecorator {
  return Inject(LOCKS)
}

class Closing implements OnApplicationShutdown {
  readonly #locks: Locks

  constructor(locks: Locks) {
    this.#locks = locks
  }

  onApplicationShutdown(): Promise<void> {
    return this.#locks.close()
  }
}

// The decorators of these classes, as calls: Node does not run decorators.
Module({})(LeaseModule)
Injectable()(Closing)
Inject(LOCKS)(Closing, undefined, 0)
