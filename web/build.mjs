// Builds the page: one file with script and style inside, which asks no other host for anything.
//
//   node build.mjs           writes dist/index.html
//   node build.mjs --check   fails where dist/index.html is not what the sources give
//
// The same sources give the same bytes: nothing of the day, the machine or the folder is in them.

import { build } from 'esbuild'
import { createHash } from 'node:crypto'
import { readFile, writeFile, mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const out = join(here, 'dist', 'index.html')
const MOST_BYTES = 150_000

async function bundle(entry, options) {
  const result = await build({
    absWorkingDir: here,
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    charset: 'utf8',
    legalComments: 'none',
    logLevel: 'warning',
    logOverride: { 'unsupported-css-property': 'silent' },
    ...options,
  })
  if (result.warnings.length > 0) throw new Error('the build has warnings; see above')
  return result.outputFiles[0].text.trim()
}

const hash = (text) => `'sha256-${createHash('sha256').update(text, 'utf8').digest('base64')}'`

export async function page() {
  const script = (
    await bundle('src/main.tsx', {
      format: 'iife',
      target: 'es2022',
      jsx: 'automatic',
      jsxImportSource: 'preact',
      define: { 'process.env.NODE_ENV': '"production"' },
    })
  ).replaceAll('</script', '<\\/script')
  const style = await bundle('src/style.css', { target: ['chrome123', 'firefox120', 'safari17.5'] })
  // The policy is in the page itself, by hashes: no script and no style but these, and answers only from where it came from.
  const policy = [
    "default-src 'none'",
    `script-src ${hash(script)}`,
    `style-src ${hash(style)}`,
    'img-src data:',
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ')
  const license = (await readFile(join(here, 'node_modules/preact/LICENSE'), 'utf8')).trim().replaceAll('\r', '')
  const template = await readFile(join(here, 'src/index.html'), 'utf8')
  // Functions, not strings: a `$` in the script means itself.
  return template
    .replace('%POLICY%', () => policy)
    .replace('%STYLE%', () => style)
    .replace('%SCRIPT%', () => script)
    .replace('%LICENSE%', () => license)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const text = await page()
  const bytes = Buffer.byteLength(text)
  if (bytes > MOST_BYTES) {
    console.error(`the page has ${bytes} bytes, more than ${MOST_BYTES}`)
    process.exit(1)
  }
  if (process.argv.includes('--check')) {
    const committed = await readFile(out, 'utf8').catch(() => '')
    if (committed !== text) {
      console.error('dist/index.html is not what the sources give: run `npm run build` and commit it')
      process.exit(1)
    }
    console.log(`dist/index.html is fresh (${bytes} bytes)`)
  } else {
    await mkdir(dirname(out), { recursive: true })
    await writeFile(out, text)
    console.log(`dist/index.html: ${bytes} bytes`)
  }
}
