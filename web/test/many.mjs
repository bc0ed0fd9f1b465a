// The dashboard of a running `loadline up` with thousands of nodes, or of a fleet: what is there at any moment stays small.
//
//   DASHBOARD=http://127.0.0.1:1234 NODES=1000 node --test test/many.mjs

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
  t.diagnostic(`at most ${most} rows at once`)
  assert.deepEqual(problems, [])
})
