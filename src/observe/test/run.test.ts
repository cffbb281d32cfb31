import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { folder, holdfast } from '../../cli/test/holdfast.ts'
import { promtool } from './exposition.ts'

test('what holdfast run leaves for the textfile collector is what Prometheus accepts', async () => {
  const name = 'a "b" \\c ü'
  expect(await holdfast(['run', name, '--metrics-file', 'a.prom', '--', 'true'])).toMatchObject({ code: 0 })
  const text = readFileSync(join(folder, 'a.prom'), 'utf8')
  expect(text).toContain('\nholdfast_run_exit_code{name="a \\"b\\" \\\\c ü"} 0\n')
  promtool(['check', 'metrics'], text)
})
