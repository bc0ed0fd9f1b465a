// The fleet of a running `loadline up --scenario totals`: its clusters, what is placed on them, and why.
//
//   DASHBOARD=http://127.0.0.1:1234 CONTROLLER=http://… KUBECONFIG=… LOADLINE=… node --test test/fleet.mjs

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test, before, after } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { DESKTOP, PHONE, faults, launch, visit } from './chromium.mjs'

const ADDRESS = `${process.env.DASHBOARD}/`
const PICTURES = join(dirname(fileURLToPath(import.meta.url)), '../../docs/pictures')

let browser
before(async () => { browser = await launch() })
after(() => browser?.close())

async function open(t, options = {}) {
  const opened = await visit(browser, ADDRESS, options)
  opened.page.setDefaultTimeout(90_000)
  t.after(opened.close)
  return opened
}

const loadline = async (...args) => JSON.parse((await promisify(execFile)(process.env.LOADLINE, [...args, '-o', 'json'], { maxBuffer: 1e8, env: process.env })).stdout)

test('clusters are there with what they have, and a placement opens to the points of each', async (t) => {
  const { page, problems } = await open(t, { viewport: { width: 1200, height: 800 }, colorScheme: 'light', at: '#/' })
  await page.getByRole('link', { name: 'Fleet' }).click()
  for (const name of ['member1', 'member2', 'member3']) await page.locator('.row.member', { hasText: name }).waitFor()
  // What is used is published every few seconds.
  await page.waitForFunction(() => [...document.querySelectorAll('.row.member .left')].every((one) => /old$/.test(one.textContent)))
  await page.locator('.row.placed', { hasText: 'default/story-1' }).waitFor()
  await page.locator('.row.placed', { hasText: /story-1.*member/ }).waitFor()
  if (process.env.LOADLINE_SCREENSHOTS === '1') {
    mkdirSync(PICTURES, { recursive: true })
    await page.screenshot({ path: join(PICTURES, 'fleet.png') })
  }
  await page.locator('.row.placed', { hasText: 'default/story-1' }).click()
  await page.getByText(/It selects member\d\./).waitFor()
  // Loads move on; both are asked until they speak of the same moment.
  for (let tries = 0; ; tries++) {
    const { placements: [told] } = await loadline('explain', 'placement', 'default/story-1', '--context', 'hub')
    const wanted = told.clusters.map(({ cluster, total, reason }) => ({ cluster, total, why: reason === null }))
    const shown = await page.locator('details.verdict').evaluateAll((all) => all.map((one) => {
      const text = (of) => one.querySelector(of)?.textContent ?? ''
      const total = /-?\d+/.exec(text('summary .score'))
      return { cluster: text('summary .name'), total: total === null ? null : Number(total[0]), why: text('summary .why') === '' }
    }))
    if (JSON.stringify(shown) === JSON.stringify(wanted)) break
    assert.ok(tries < 30, `${JSON.stringify(shown)} is not ${JSON.stringify(wanted)}`)
  }
  assert.deepEqual(problems, [])
})

test('a binding opens to what each estimator said, in the words of explain', async (t) => {
  const { page, problems } = await open(t, { viewport: { width: 1200, height: 800 }, at: '#/fleet?of=bindings' })
  const row = page.locator('.row.placed', { hasText: 'default/solver-deployment' })
  await row.filter({ hasText: /member\d \d+/ }).waitFor()
  await row.click()
  await page.getByText(/It is on member\d \d+/).waitFor()
  const told = await loadline('explain', 'binding', 'default/solver-deployment', '--controller', process.env.CONTROLLER)
  const decided = told.decision ?? told.now
  for (const { name, reason } of decided.filtered) await page.locator('tbody tr', { hasText: name }).filter({ hasText: reason }).waitFor()
  for (const { name, estimates } of decided.feasible) {
    const text = await page.locator('tbody tr', { hasText: name }).innerText()
    for (const { by } of estimates) assert.ok(text.includes(by), `${by} in ${text}`)
  }
  assert.ok(decided.feasible.length > 0)
  assert.deepEqual(problems, [])
})

for (const [name, viewport, colorScheme] of [['desktop, dark', DESKTOP, 'dark'], ['phone, light', PHONE, 'light']]) {
  test(`the fleet, ${name}: nothing too wide, accessible, no complaint`, async (t) => {
    const { page, problems } = await open(t, { viewport, colorScheme, reducedMotion: 'reduce', at: '#/fleet' })
    await page.locator('.row.placed').first().waitFor()
    const found = await faults(page, 'the fleet')
    await page.locator('.row.placed').first().click()
    await page.locator('.verdict').first().waitFor()
    found.push(...(await faults(page, 'a placement')))
    assert.deepEqual(found, [])
    assert.deepEqual(problems, [])
  })
}
