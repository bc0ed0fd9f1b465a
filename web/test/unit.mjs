// Runs the unit tests: bundled for node's own test runner, which does not read TypeScript by itself.

import { build } from 'esbuild'
import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const out = join(here, '.out')
rmSync(out, { recursive: true, force: true })
mkdirSync(out)
const tests = readdirSync(join(here, 'unit')).filter((name) => name.endsWith('.test.ts'))
await build({
  entryPoints: tests.map((name) => join(here, 'unit', name)),
  bundle: true,
  platform: 'node',
  format: 'esm',
  outdir: out,
  outExtension: { '.js': '.mjs' },
  sourcemap: 'inline',
  logLevel: 'warning',
})
const built = tests.map((name) => join(out, name.replace(/\.ts$/, '.mjs')))
const ran = spawnSync(process.execPath, ['--enable-source-maps', '--test', ...built], { stdio: 'inherit' })
process.exit(ran.status ?? 1)
