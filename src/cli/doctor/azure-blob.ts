import { failure } from '../../stores/azure-blob/failure.ts'
import { clientAt } from '../../stores/azure-blob/open.ts'
import { clockFinding, type Finding, ok, problem, tlsFinding, warning } from './finding.ts'

/** Checks the container of a URL. Rejects if Azure cannot be reached. `signal` ends the checks. */
export async function checkAzureBlob(url: string, abortSignal: AbortSignal): Promise<Finding[]> {
  const { container, service, name } = clientAt(url)
  const { hostname, protocol } = new URL(container.url)
  const clock: Finding[] = []
  const found = await unlessRefused('azure-blob-container', `read the container ${name}`, async () => {
    const sent = Date.now()
    const { date } = await container.getProperties({}, { abortSignal })
    if (date) clock.push(clockFinding(date.getTime() + 500, sent, Date.now())) // it is in whole seconds
    return ok('azure-blob-container', `the container ${name} exists`)
  })
  const copies = await unlessRefused('azure-blob-copies', 'read the settings of the account', async () => {
    const { deleteRetentionPolicy } = await service.getProperties({ abortSignal })
    if (!deleteRetentionPolicy?.enabled) return ok('azure-blob-copies', 'soft delete of blobs is off')
    const why = 'each renewal leaves a copy, which costs money and makes listing slow'
    return warning('azure-blob-copies', 'soft delete of blobs is on', why, 'use an account without it')
  })
  return [tlsFinding(hostname, protocol === 'https:'), ...clock, found, copies]
}

/** What this login may not ask is not checked. */
async function unlessRefused(id: string, what: string, find: () => Promise<Finding>): Promise<Finding> {
  try {
    return await find()
  } catch (error) {
    const { code, message } = failure(error)
    if (code === 'NOT_MIGRATED')
      return problem(id, 'the container does not exist', 'leases have no place to be stored', 'run holdfast migrate')
    if (code !== 'ACCESS_DENIED') throw error
    return warning(id, `this login may not ${what}`, `it was not checked (${message})`, 'run doctor with another login')
  }
}
