// A real Chromium, and what every page in it is held to.

import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { chromium } from 'playwright-core'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync']

export const DESKTOP = { width: 1280, height: 900 }
export const PHONE = { width: 360, height: 740 }
export const LOOKS = [['desktop, light', DESKTOP, 'light'], ['desktop, dark', DESKTOP, 'dark'], ['phone, light', PHONE, 'light'], ['phone, dark', PHONE, 'dark']]

/** The browser of $CHROMIUM, or the one of this machine. */
export async function launch() {
  const executablePath = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) => path && existsSync(path))
  assert.ok(executablePath, 'no chromium found: install it, or name it in CHROMIUM')
  return await chromium.launch({ executablePath, headless: true, args: FLAGS })
}

/** A page at an address; `problems` has everything the console complained of, but for answers the test is about. */
export async function visit(browser, address, { at = '#/', viewport = DESKTOP, expect = [], ...context } = {}) {
  const contexts = await browser.newContext({ viewport, ...context })
  const page = await contexts.newPage()
  const problems = []
  page.on('console', (message) => {
    const about = message.location().url
    if (['error', 'warning'].includes(message.type()) && !expect.some((one) => one.test(about))) problems.push(`${message.text()} ${about}`)
  })
  page.on('pageerror', (error) => problems.push(error.stack))
  page.on('request', (request) => {
    if (!request.url().startsWith(address) && !request.url().startsWith('data:')) problems.push(`asks another host: ${request.url()}`)
  })
  await page.goto(address + at)
  await page.waitForSelector('#title')
  return { page, problems, close: () => contexts.close() }
}

export const go = async (page, hash) => {
  await page.evaluate((to) => { location.hash = to }, hash)
  await page.waitForFunction(() => document.querySelector('.waiting') === null)
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))))
}

/** What is wrong with a view for somebody with a narrow screen, or without eyes for it. */
export async function faults(page, view) {
  const found = []
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
  if (wide > 0) found.push(`${view} is ${wide} px too wide`)
  await page.evaluate(AXE)
  const { violations } = await page.evaluate((runOnly) => globalThis.axe.run(document, { runOnly }), RULES)
  for (const { id, help, nodes } of violations) found.push(`${view} ${id}: ${help}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(' | ')} ${nodes[0]?.any[0]?.message ?? ''}`)
  return found
}

/** Out of sight, or seen again: as when a laptop is closed, or another tab is looked at. */
export const see = (page, state) => page.evaluate((to) => {
  Object.defineProperty(document, 'visibilityState', { value: to, configurable: true })
  document.dispatchEvent(new Event('visibilitychange'))
}, state)
