// The dashboard of a running `loadline up` with thousands of nodes, or of a fleet: what is there at any moment stays small.
//
//   DASHBOARD=http://127.0.0.1:1234 NODES=1000 node --test test/many.mjs
//
// `loadline up --nodes 5000 --without agent --quiet-world` prints an address to give it with NODES=5000. What an answer of all nodes weighs,
// how long it takes and the longest task of the page are told, as figures of this machine at this moment; only the weight is held to.

import assert from 'node:assert/strict'
import { test, before, after } from 'node:test'
import { launch, visit } from './chromium.mjs'

const NODES = Number(process.env.NODES)

let browser
before(async () => { browser = await launch() })
after(() => browser?.close())

test(`${NODES} nodes: few rows are there at any moment, and every node can be reached`, async (t) => {
  const { page, problems, close } = await visit(browser, `${process.env.DASHBOARD}/`, { at: '#/?sort=name' })
  t.after(close)
  page.setDefaultTimeout(120_000)
  await page.waitForFunction((nodes) => document.querySelector('.list > li')?.getAttribute('aria-setsize') === String(nodes), NODES)
  const last = `node-${NODES - 1}`
  await page.evaluate(() => {
    window.longest = 0
    new PerformanceObserver((list) => { for (const { duration } of list.getEntries()) window.longest = Math.max(window.longest, duration) }).observe({ type: 'longtask' })
  })
  let most = 0
  for (let at = 0; at <= 20; at++) {
    await page.evaluate((share) => scrollTo(0, document.documentElement.scrollHeight * share), at / 20)
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))))
    most = Math.max(most, await page.locator('.list > li').count())
  }
  await page.locator('.row', { hasText: last }).waitFor()
  assert.ok(most < 80, `${most} rows at once`)
  await page.getByRole('searchbox').fill(last)
  await page.waitForFunction(() => document.querySelector('.list > li')?.getAttribute('aria-setsize') === '1')
  // Two more pictures, while somebody looks.
  for (let at = 0; at < 2; at++) await page.waitForResponse(/\/api\/v1\/cluster/)
  const { longest, answers } = await page.evaluate(() => ({
    longest: window.longest,
    answers: performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('/api/v1/cluster')).map(({ encodedBodySize, decodedBodySize, duration }) => ({ encodedBodySize, decodedBodySize, duration })),
  }))
  const last5 = answers.filter(({ decodedBodySize }) => decodedBodySize > 0).slice(-5)
  for (const { encodedBodySize, decodedBodySize } of last5) assert.ok(encodedBodySize * 4 < decodedBodySize, `${encodedBodySize} of ${decodedBodySize} bytes`)
  assert.ok(last5.length > 0)
  t.diagnostic(`all nodes: ${last5.map((one) => `${Math.round(one.encodedBodySize / 1024)} of ${Math.round(one.decodedBodySize / 1024)} KiB in ${Math.round(one.duration)} ms`).join(', ')}; longest task ${Math.round(longest)} ms`)
  t.diagnostic(`at most ${most} rows at once`)
  assert.deepEqual(problems, [])
})
