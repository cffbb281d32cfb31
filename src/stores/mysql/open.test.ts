import { expect, test } from 'vitest'
import { failureOf } from '../../../test/support.ts'
import { openMysql } from './open.ts'

test.each(['mysql://u%ff:s3cret@h/d', 'mysql://u:s3cret%ff@h/d', 'mysql://u:s3cret@h/d%ff', 'mysql://u:s3cret%@h/d'])(
  '%s is refused, and the message says what to do',
  async url => {
    const error = await failureOf(openMysql(url))
    expect(error).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: 'the URL of a MySQL store has a % that encodes nothing: write it as %25',
    })
  },
)
