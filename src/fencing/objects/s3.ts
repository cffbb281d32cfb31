import { checkKeys, invalid, show } from '../../contract/check.ts'
import type { LeaseError, LeaseErrorCode } from '../../contract/errors.ts'
import { isRefusal, type Objects, requestFailed, withoutTag } from './objects.ts'

/** The part of the class `S3` of `@aws-sdk/client-s3` >= 3.700 that is used. */
export interface S3Client {
  getObject(
    input: { Bucket: string; Key: string },
    options?: { abortSignal?: AbortSignal },
  ): Promise<{ ETag?: string | undefined; Body?: { transformToByteArray(): Promise<Uint8Array> } | undefined }>
  putObject(
    input: { Bucket: string; Key: string; Body: Uint8Array } & ({ IfMatch: string } | { IfNoneMatch: string }),
    options?: { abortSignal?: AbortSignal },
  ): Promise<unknown>
}

/**
 * The objects of a bucket, by key, over the class `S3` of `@aws-sdk/client-s3`. S3 evaluates the condition atomically with
 * the write. The client decides about time limits and retries.
 * @throws LeaseError INVALID_ARGUMENT
 */
export function s3Objects(client: S3Client, options: { readonly bucket: string }): Objects {
  checkKeys(options, new Set(['bucket']), 's3Objects')
  const { bucket: Bucket } = options
  if (typeof Bucket !== 'string' || Bucket === '')
    throw invalid("s3Objects needs a bucket: s3Objects(client, { bucket: 'reports' })")
  let checked: Promise<void> | undefined
  return {
    async read(Key, signal) {
      try {
        const { ETag, Body } = await client.getObject({ Bucket, Key }, { ...(signal && { abortSignal: signal }) })
        if (ETag && Body) return { tag: ETag, body: await Body.transformToByteArray() }
      } catch (error) {
        signal?.throwIfAborted()
        const status = statusOf(error)
        if (status === 404) return undefined
        throw failed(`${show(Key)} could not be read`, error, 'STORE_UNAVAILABLE')
      }
      throw withoutTag(show(Key))
    },
    async write(Key, Body, tag, signal) {
      checked ??= checkVersion(client)
      await checked
      const condition = tag === undefined ? { IfNoneMatch: '*' } : { IfMatch: tag }
      try {
        await client.putObject({ Bucket, Key, Body, ...condition }, { ...(signal && { abortSignal: signal }) })
        return true
      } catch (error) {
        signal?.throwIfAborted()
        const status = statusOf(error)
        if (isRefusal(status, tag) || status === 409) return false // 409: another conditional write is under way
        throw failed(`${show(Key)} could not be written`, error, 'OUTCOME_UNKNOWN')
      }
    },
  }
}

/** Versions before 3.700 silently drop `IfMatch`, so older holders would overwrite newer ones. */
async function checkVersion(client: S3Client): Promise<void> {
  const { config } = client as { config?: { defaultUserAgentProvider?: () => Promise<[string, string?][]> } }
  const agents = await config?.defaultUserAgentProvider?.()
  const version = agents?.find(([name]) => name === 'aws-sdk-js')?.[1] ?? ''
  if (!/^3\.[1-6]?\d?\d\./.test(version)) return
  throw invalid(`@aws-sdk/client-s3 ${version} sends no If-Match with a write: install 3.700 or later`)
}

function statusOf(error: unknown): number | undefined {
  return (error as { $metadata?: { httpStatusCode?: number } } | undefined)?.$metadata?.httpStatusCode
}

function failed(what: string, error: unknown, passing: LeaseErrorCode): LeaseError {
  return requestFailed(`${what}: ${(error as Error).message}`, statusOf(error), passing, { cause: error })
}
