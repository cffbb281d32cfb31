import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { LeaseError } from '../../src/index.ts'
import { TOOLS } from './binary.ts'
import { type Command, newPlace, ServerProcess } from './process.ts'

const HOME = join(TOOLS, 'dynamodb')

/** Amazon's DynamoDB Local. It keeps its data across restarts. */
export async function startDynamoDb(): Promise<DynamoDbServer> {
  // It syncs each write, which takes long on a busy disk. In memory its data outlive it all the same.
  const place = await newPlace('dynamodb', existsSync('/dev/shm') ? '/dev/shm' : undefined)
  // It listens on all addresses, also on the one by which a port is reserved.
  await place.port.release()
  const server = new DynamoDbServer(place)
  await server.start()
  return server
}

/** It takes any credentials and any region. */
export class DynamoDbServer extends ServerProcess {
  get endpoint(): string {
    return `http://${this.host}:${this.port}`
  }

  protected override command(): Command {
    if (!existsSync(join(HOME, 'DynamoDBLocal.jar')))
      throw new LeaseError('DRIVER_MISSING', 'DynamoDB Local was not found: run ./script/setup --servers in a checkout')
    const args = [
      ...'-Xms32m -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1'.split(' '),
      '-jar',
      join(HOME, 'DynamoDBLocal.jar'),
      ...['-port', String(this.port), '-dbPath', this.folder, '-sharedDb', '-disableTelemetry'],
    ]
    return { binary: 'java', debianPackage: 'default-jre', args }
  }

  protected override async isReady(): Promise<boolean> {
    const response = await fetch(this.endpoint, { signal: AbortSignal.timeout(5_000) })
    await response.arrayBuffer()
    return response.status === 400 // a request without credentials
  }
}
