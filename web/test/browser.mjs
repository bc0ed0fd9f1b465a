// Opens the page in a real browser, on a made-up cluster: what people see, do with the keyboard, and must not notice.
//
//   npm run browser                       finds chromium in the usual places, or in $CHROMIUM
//   SHOTS=folder npm run browser          also saves pictures

import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { test, before, after } from 'node:test'
import { DESKTOP, LOOKS, faults, go, launch, see, visit } from './chromium.mjs'
import { World, serve } from './fixture.mjs'

const VIEWS = ['#/', '#/?by=memory&sort=name', '#/node/node-03', '#/node/node-05', '#/decisions', '#/decisions?only=unplaced', '#/pod/shop/web-1', '#/pod/batch/giant-0', '#/protection', '#/data?show=all', '#/data', '#/node/none', '#/pod/nowhere/none']
const FLEET = ['#/fleet', '#/fleet?of=bindings', '#/placement/team/steady', '#/binding/shop/web-deployment', '#/binding//quota', '#/placement/team/none']

let browser
before(async () => { browser = await launch() })
after(() => browser?.close())

/** A page on a made-up world. */
async function open(t, { world = {}, fleet = false, viewport = DESKTOP, expect = [], at = '#/', ...context } = {}) {
  const made = new World(world)
  const server = await serve(made, { fleet })
  const { page, problems, close } = await visit(browser, server.address, { viewport, expect, at, ...context })
  t.after(async () => {
    await close()
    server.close()
  })
  return { page, world: made, problems, address: server.address }
}

for (const [name, viewport, colorScheme] of LOOKS) {
  test(`every view, ${name}: no complaint, nothing too wide, accessible`, async (t) => {
    const { page, problems } = await open(t, { viewport, colorScheme, fleet: true, world: { ahead: 60 }, expect: [/\/none$/, /pods\/nowhere/], reducedMotion: 'reduce' })
    await page.waitForSelector('nav a[href="#/fleet"]')
    const found = []
    for (const view of [...VIEWS, ...FLEET]) {
      await go(page, view)
      found.push(...(await faults(page, view)))
      if (process.env.SHOTS) {
        mkdirSync(process.env.SHOTS, { recursive: true })
        await page.screenshot({ path: join(process.env.SHOTS, `${name.replace(/\W+/g, '-')}-${view.replace(/\W+/g, '-')}.png`) })
      }
    }
    assert.deepEqual(found, [])
    assert.deepEqual(problems, [])
  })
}

test('a node gets hot, says why it takes no pods, is protected, and cools', async (t) => {
  const { page, world, problems } = await open(t, { world: { ahead: 5 } })
  const row = page.locator('.row', { hasText: 'node-03' })
  await row.waitFor()
  assert.equal(await row.locator('.badge').count(), 0)
  world.ahead += 35
  await row.locator('.badge', { hasText: 'over the line' }).waitFor()
  await row.click()
  await page.locator('.reasons', { hasText: 'is over its limit 0.65' }).waitFor()
  await page.getByRole('region', { name: 'What happened here' }).getByText('sent away').waitFor()
  await page.getByRole('link', { name: 'Protection' }).click()
  const group = page.getByRole('region', { name: 'node-03' })
  await group.getByText('slowed down').first().waitFor()
  await group.getByText('sent away').waitFor()
  world.ahead += 60
  await group.getByText('given back').first().waitFor()
  await page.getByRole('link', { name: 'Cluster', exact: true }).click()
  await page.waitForFunction(() => document.querySelector('.row[href="#/node/node-03"] .badge') === null)
  assert.deepEqual(problems, [])
})

test('a decision opens to why here and why not there', async (t) => {
  const { page, problems } = await open(t, { world: { ahead: 45 }, at: '#/decisions' })
  await page.locator('.row.unplaced').first().click()
  await page.getByText('Nowhere.').waitFor()
  const answer = page.locator('.answer')
  assert.match(await answer.innerText(), /It found no node\./)
  const verdict = page.locator('details.verdict').first()
  assert.match(await verdict.innerText(), /cpu would pass the line: .* is over/)
  assert.match(await verdict.innerText(), /What would change it: would fit if the cpu target were/)
  await page.goBack()
  await page.locator('.row.decision:not(.unplaced)').first().click()
  await page.getByText(/It has the highest score of those that can take it/).waitFor()
  // First, where it is and what that rested on; what would be now comes after.
  assert.match(await answer.innerText(), /^\s*It went to node-00\. Score 93; next was node-04 with 91\.\s+CPU\s+[\d.]+ measured \+ [\d.]+ pending \+ 0\.5 this pod = [\d.]+, at most [\d.]+ \(0\.65 of/)
  assert.match(await page.getByRole('region', { name: 'What was decided' }).innerText(), /Why not there\s+node-\d+: /)
  assert.ok((await answer.boundingBox()).y < (await page.locator('.later').boundingBox()).y)
  assert.match(await page.getByRole('region', { name: 'Who was moved' }).innerText(), /shop\/web-0 · from node-03: goes to node-00/)
  assert.match(await page.locator('.later').innerText(), /the recommendation shop\/web, 42\ss old/)
  const refused = page.locator('details.refused').first()
  await refused.locator('summary').click()
  await refused.locator('.reasons').waitFor()
  await page.getByRole('button', { name: /Show up to 200/ }).click()
  await page.waitForFunction(() => document.querySelectorAll('details.verdict').length === 40)
  assert.deepEqual(problems, [])
})

test('five thousand nodes: few rows are there at any moment, and every node can be reached', async (t) => {
  const { page, problems } = await open(t, { world: { nodes: 5000 }, at: '#/?sort=name' })
  await page.locator('.row').first().waitFor()
  const rows = () => page.locator('.list > li').count()
  assert.ok((await rows()) < 60)
  const slow = await page.evaluate(async () => {
    let longest = 0
    const observer = new PerformanceObserver((list) => { for (const entry of list.getEntries()) longest = Math.max(longest, entry.duration) })
    observer.observe({ type: 'longtask', buffered: false })
    const end = document.documentElement.scrollHeight
    for (let at = 0; at < end; at += end / 120) {
      scrollTo(0, at)
      await new Promise(requestAnimationFrame)
    }
    scrollTo(0, end)
    await new Promise((done) => setTimeout(done, 100))
    observer.disconnect()
    return longest
  })
  t.diagnostic(`longest task while scrolling through 5 000 nodes, polls included: ${Math.round(slow)} ms`)
  await page.locator('.row', { hasText: 'node-4999' }).waitFor()
  assert.ok((await rows()) < 60)
  assert.equal(await page.locator('.list > li').last().getAttribute('aria-setsize'), '5000')
  await page.getByRole('searchbox').fill('node-123')
  // node-1230 … node-1239, and not node-0123
  await page.waitForFunction(() => document.querySelector('.list > li')?.getAttribute('aria-setsize') === '10')
  assert.match(page.url(), /q=node-123/)
  assert.deepEqual(problems, [])
})

test('the keyboard reaches everything, and back finds the place', async (t) => {
  const { page, problems } = await open(t, { world: { nodes: 500 }, at: '#/?sort=name' })
  await page.locator('.row').first().waitFor()
  await page.keyboard.press('Tab')
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to the content')
  const seen = new Set()
  for (let at = 0; at < 25 && !seen.has('row'); at++) {
    await page.keyboard.press('Tab')
    seen.add(await page.evaluate(() => { const e = document.activeElement; return e.classList.contains('row') ? 'row' : e.getAttribute('role') ?? e.tagName + (e.type ?? '') }))
  }
  for (const one of ['A', 'slider', 'INPUTradio', 'SELECTselect-one', 'INPUTsearch', 'row']) assert.ok(seen.has(one), `${one} is reached: ${[...seen]}`)
  await page.keyboard.press('End')
  await page.waitForFunction(() => document.activeElement.textContent.startsWith('node-499'))
  for (let at = 0; at < 3; at++) await page.keyboard.press('ArrowUp')
  await page.waitForFunction(() => document.activeElement.textContent.startsWith('node-496'))
  const before = await page.evaluate(() => scrollY)
  await page.keyboard.press('Enter')
  await page.waitForFunction(() => document.activeElement.id === 'title' && document.activeElement.textContent === 'node-496')
  assert.equal(await page.evaluate(() => scrollY), 0)
  await page.goBack()
  await page.waitForFunction((y) => Math.abs(scrollY - y) < 3, before)
  await page.locator('.row', { hasText: 'node-496' }).waitFor()
  const plot = page.getByRole('slider').first()
  await plot.focus()
  await page.keyboard.press('Home')
  assert.equal(await plot.getAttribute('aria-valuenow'), '0')
  assert.match(await plot.getAttribute('aria-valuetext'), /measured \d+/)
  assert.deepEqual(problems, [])
})

test('a hundred thousand decisions a minute: bounded, and the page still answers', async (t) => {
  const { page, world, problems } = await open(t, { world: { rate: 1700 }, at: '#/decisions' })
  await page.locator('.row').first().waitFor()
  for (let at = 0; at < 12; at++) {
    world.ahead += 6
    const before = world.asked
    await page.waitForFunction(() => true)
    await page.evaluate(() => dispatchEvent(new Event('online')))
    for (let wait = 0; world.asked === before && wait < 100; wait++) await page.waitForTimeout(20)
  }
  await page.getByText(/passed over: more happened than this page can hold/).waitFor()
  const size = Number(await page.locator('.list > li').first().getAttribute('aria-setsize'))
  assert.ok(size > 1000 && size <= 5000, `${size} kept`)
  assert.ok((await page.locator('.list > li').count()) < 60)
  await page.getByRole('link', { name: 'Data' }).click()
  await page.getByRole('heading', { name: 'Data', exact: true }).waitFor()
  assert.deepEqual(problems, [])
})

test('a program that is away: said since when, the last picture stays grey, and comes back by itself', async (t) => {
  const { page, world, problems } = await open(t, { expect: [/\/api\/v1\//] })
  await page.locator('.row').first().waitFor()
  world.down = 'cut'
  const banner = page.getByText(/Not answering since \d\d:\d\d:\d\d/)
  await banner.waitFor()
  assert.equal(await page.locator('main.stale').count(), 1)
  assert.ok((await page.locator('.row').count()) > 0)
  assert.deepEqual(await faults(page, 'away'), [])
  world.down = null
  await page.getByRole('button', { name: 'Ask now' }).click()
  await banner.waitFor({ state: 'detached' })
  assert.equal(await page.locator('main.stale').count(), 0)
  assert.deepEqual(problems, [])
})

test('one answer that is denied leaves the others alone', async (t) => {
  const { page, world, problems } = await open(t, { expect: [/\/api\/v1\/(history|fleet|happenings)/], at: '#/data' })
  world.denied.add('history').add('happenings')
  await page.getByRole('link', { name: 'Cluster', exact: true }).click()
  await page.getByText(/The last hour is not known since .*: .*forbidden/).waitFor()
  await page.locator('.row').first().waitFor()
  assert.equal(await page.getByText('Not answering').count(), 0)
  assert.deepEqual(problems, [])
})

test('where Events cannot be read it is said, and nobody is told to make a pod', async (t) => {
  const { page, world, problems } = await open(t, { at: '#/protection' })
  world.eventless = 'events.events.k8s.io is forbidden'
  world.epoch = 'another'
  await page.getByText(/What happened is not known: .* those cannot be read: events.events.k8s.io is forbidden/).waitFor()
  await page.getByRole('link', { name: /^Decisions/ }).click()
  await page.getByText(/Decisions are not known: .* forbidden/).waitFor()
  assert.equal(await page.getByText('Nothing was decided yet').count(), 0)
  await page.getByRole('link', { name: 'Data' }).click()
  await page.locator('.sources li', { hasText: 'events' }).getByText('problem').waitFor()
  assert.deepEqual(problems, [])
})

test('a fleet that comes later is found, and stays while the hub is away', async (t) => {
  const { page, world, problems } = await open(t, { fleet: true, world: {}, expect: [/\/api\/v1\/fleet/] })
  await page.locator('nav a[href="#/fleet"]').waitFor()
  world.denied.add('fleet')
  await see(page, 'hidden')
  const answered = page.waitForResponse(/\/api\/v1\/fleet/)
  await see(page, 'visible')
  assert.equal((await answered).status(), 403)
  await page.waitForTimeout(200)
  assert.equal(await page.locator('nav a[href="#/fleet"]').count(), 1)
  assert.deepEqual(problems, [])
})

test('of a pod that is gone what is remembered is told, and not that it waits', async (t) => {
  const { page, problems } = await open(t, { at: '#/pod/shop/gone-1' })
  await page.getByText('It is not there any more').waitFor()
  assert.match(await page.locator('.answer').innerText(), /^\s*It went to node-00\./)
  assert.equal(await page.getByText('It has no node yet').count(), 0)
  assert.deepEqual(problems, [])
})

test('a page nobody looks at asks nothing, and asks at once when somebody does', async (t) => {
  const { page, world, problems } = await open(t)
  await page.locator('.row').first().waitFor()
  await see(page, 'hidden')
  await page.waitForTimeout(300)
  const before = world.asked
  await page.waitForTimeout(3500)
  assert.equal(world.asked, before)
  const answered = page.waitForResponse(/\/api\/v1\/cluster/)
  await see(page, 'visible')
  await answered
  assert.deepEqual(problems, [])
})

test('an order does not change under the hand', async (t) => {
  const { page, world, problems } = await open(t, { world: { ahead: 5 } })
  const first = page.locator('.list > li[data-at="0"]')
  await first.waitFor()
  const { y } = await first.boundingBox()
  await first.hover()
  await page.getByText('order held while you are here').waitFor()
  assert.equal((await first.boundingBox()).y, y, 'nothing moves because it is pointed at')
  const name = await first.getAttribute('data-key')
  assert.notEqual(name, 'node-03')
  world.ahead += 35
  await page.locator('.row', { hasText: 'node-03' }).locator('.badge', { hasText: 'over the line' }).waitFor()
  assert.equal(await first.getAttribute('data-key'), name)
  await page.mouse.move(5, 5)
  await page.waitForFunction(() => document.querySelector('.list > li[data-at="0"]').dataset.key === 'node-03')
  assert.deepEqual(problems, [])
})

test('light and dark are chosen by hand, and kept', async (t) => {
  const { page, problems } = await open(t, { colorScheme: 'light' })
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
  const light = await ground()
  await page.getByLabel('Colours').selectOption('dark')
  const dark = await ground()
  assert.notEqual(dark, light)
  await page.reload()
  await page.waitForSelector('#title')
  assert.equal(await ground(), dark)
  assert.deepEqual(problems, [])
})
