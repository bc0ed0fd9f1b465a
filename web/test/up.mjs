// Opens the dashboard of a running `loadline up` in a real browser, while its story is told: what a newcomer sees.
//
//   DASHBOARD=http://127.0.0.1:1234 KUBECONFIG=… LOADLINE=target/debug/loadline node --test test/up.mjs
//
// `cargo test -p loadline --test browser` starts both. With LOADLINE_SCREENSHOTS=1 the pictures of the documents are made anew.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test, before, after } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { LOOKS, faults, go, launch, see, visit } from './chromium.mjs'

const ADDRESS = `${process.env.DASHBOARD}/`
const PICTURES = join(dirname(fileURLToPath(import.meta.url)), '../../docs/pictures')
const PATIENCE = 90_000
/** Enough for a picture, and small. */
const WINDOW = { width: 1200, height: 860 }

let browser
before(async () => { browser = await launch() })
after(() => browser?.close())

async function open(t, options = {}) {
  const opened = await visit(browser, ADDRESS, options)
  opened.page.setDefaultTimeout(PATIENCE)
  t.after(opened.close)
  return opened
}

/** A picture for the documents, if they are wanted. */
async function picture(page, name, height = WINDOW.height) {
  if (process.env.LOADLINE_SCREENSHOTS !== '1') return
  mkdirSync(PICTURES, { recursive: true })
  await page.mouse.move(2, 2)
  await page.screenshot({ path: join(PICTURES, `${name}.png`), clip: { x: 0, y: 0, width: WINDOW.width, height } })
}

/** What `loadline explain pod` says. */
async function explain(pod) {
  const args = ['explain', 'pod', pod, '--kubeconfig', process.env.KUBECONFIG, '--scheduler-name', 'default-scheduler', '-o', 'json']
  const { stdout } = await promisify(execFile)(process.env.LOADLINE, args, { maxBuffer: 1e8 })
  return JSON.parse(stdout)
}

/** Figures move on while one reads; the words do not. */
const worded = (text) => text.replace(/[\d.]+m?/g, '#').trim()

test('the story is seen: pods go where there is room, a node passes its line, who is slowed down gets it back', async (t) => {
  const { page, problems } = await open(t, { viewport: WINDOW, colorScheme: 'light' })
  await page.locator('.row', { hasText: 'node-00' }).waitFor()

  // Many pods come at once: each decision is there, and says where.
  await page.getByRole('link', { name: /^Decisions/ }).click()
  const placed = page.locator('.row.decision:not(.unplaced)', { hasText: 'default/web-' })
  await placed.first().waitFor()

  // Customers come: a node passes its line, and its least important pods are slowed down.
  await page.getByRole('link', { name: 'Cluster', exact: true }).click()
  const row = page.locator('.row', { hasText: 'node-00' })
  await row.locator('.badge', { hasText: /over the line|closed|cooling/ }).waitFor()
  await picture(page, 'cluster')
  await page.getByRole('link', { name: 'Protection' }).click()
  const group = page.getByRole('region', { name: 'node-00' })
  await group.getByText('slowed down', { exact: true }).first().waitFor()
  const slowed = await group.locator('li', { hasText: 'slowed down' }).first().locator('a').first().innerText()
  assert.match(slowed, /^default\/batch-/, 'the shop is more important')
  await group.getByText('sent away', { exact: true }).first().waitFor()

  // Its agent says which line, how far it is to it, and who is next.
  await group.getByRole('link', { name: 'node-00' }).click()
  const rules = page.getByRole('region', { name: 'Lines its agent holds it to' })
  await rules.locator('tbody tr').first().waitFor()
  const turns = page.getByRole('region', { name: 'Pods of node-00' }).locator('tbody tr')
  const first = await turns.first().locator('th').innerText()
  assert.match(first, /^default\/batch-/, `the first to be acted on is a batch job: ${first}`)
  await turns.filter({ hasText: 'default/shop' }).getByText('left alone').waitFor()
  await page.getByText('In the order in which its agent would act on them').waitFor()
  await page.getByText('What its agent did, and what came of it').waitFor()
  await rules.evaluate((card) => scrollTo(0, card.getBoundingClientRect().top + scrollY - 70))
  await picture(page, 'node', 600)

  // They have gone: what was taken is given back.
  await page.getByRole('link', { name: 'Protection' }).click()
  await group.getByText('given back', { exact: true }).first().waitFor()
  assert.deepEqual(problems, [])
})

test('a decision opens to the reasons that the command line gives', async (t) => {
  const { page, problems } = await open(t, { viewport: WINDOW, colorScheme: 'light', at: '#/decisions?q=default%2Fweb-' })
  const decision = page.locator('.row.decision:not(.unplaced)').first()
  await decision.waitFor()
  await decision.focus()
  await page.keyboard.press('Enter')
  await page.waitForFunction(() => document.activeElement.id === 'title' && document.activeElement.textContent.startsWith('default/web-'))
  const pod = await page.locator('#title').innerText()
  await page.getByRole('heading', { name: 'What was decided' }).waitFor()
  // What comes first is the node it is on, and what that rested on when it was decided.
  const on = await page.locator('.lead a').innerText()
  const answer = page.locator('.answer')
  assert.match(await answer.innerText(), new RegExp(`^\\s*It went to ${on}\\. Score \\d+[;,.].*\\s+CPU\\s+(?:[\\d.]+|not) measured \\+ .* this pod`))
  assert.equal((await explain(pod)).node, on)
  await page.locator('.later').getByText(/To node-\d+\.|Nowhere\./).waitFor()
  const refused = page.locator('details.refused').first()
  await refused.waitFor()
  await picture(page, 'decision')

  // A node that is refused now may not be a moment later: both are asked until they speak of the same.
  let seen = []
  for (let tries = 0; tries < 20; tries++) {
    const told = new Map((await explain(pod)).now.nodes.filter((one) => !one.fits).map((one) => [one.node, one.reasons.map(worded)]))
    seen = []
    for (const one of await page.locator('details.refused').all()) {
      const name = (await one.locator('summary .name').innerText()).split(' ')[0]
      if ((await one.getAttribute('open')) === null) await one.locator('summary').click()
      seen.push([name, (await one.locator('.reasons li').allInnerTexts()).map(worded)])
    }
    const missing = seen.filter(([name, reasons]) => JSON.stringify(told.get(name)) !== JSON.stringify(reasons))
    if (seen.length > 0 && missing.length === 0) {
      t.diagnostic(`${seen.length} refused nodes, for the same reasons as explain: ${seen[0].flat().join(': ')}`)
      assert.deepEqual(problems, [])
      return
    }
  }
  assert.fail(`the page and explain never agreed about ${pod}: ${JSON.stringify(seen)}`)
})

for (const [name, viewport, colorScheme] of LOOKS) {
  test(`every view of it, ${name}: nothing too wide, accessible, no complaint`, async (t) => {
    const { page, problems } = await open(t, { viewport, colorScheme, reducedMotion: 'reduce' })
    await page.locator('.row').first().waitFor()
    const found = []
    for (const view of ['#/', '#/node/node-00', '#/decisions', '#/protection', '#/data?show=all']) {
      await go(page, view)
      found.push(...(await faults(page, view)))
    }
    await go(page, '#/decisions')
    await page.locator('.row.decision').first().click()
    await page.locator('.verdict').first().waitFor()
    found.push(...(await faults(page, 'a decision')))
    assert.deepEqual(found, [])
    assert.deepEqual(problems, [])
  })
}

test('a browser that slept goes on where it was, without a backlog', async (t) => {
  const { page, problems } = await open(t)
  await page.locator('.row').first().waitFor()
  let asked = 0
  page.on('request', () => { asked += 1 })
  await see(page, 'hidden')
  // What was under way when it fell asleep is over.
  await page.waitForFunction(() => true)
  asked = 0
  await page.waitForTimeout(5000)
  assert.equal(asked, 0, 'nothing is asked while nobody looks')
  const answered = page.waitForResponse(/\/api\/v1\/cluster/)
  await see(page, 'visible')
  await answered
  await page.waitForTimeout(1000)
  assert.ok(asked > 0 && asked <= 4, `everything once, and not what was missed: ${asked}`)
  assert.deepEqual(problems, [])
})
