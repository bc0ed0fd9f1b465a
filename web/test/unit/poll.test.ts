import assert from 'node:assert/strict'
import { test } from 'node:test'
import { backoff, Poll, Refused, type World } from '../../src/poll.ts'

/** A world whose time passes only when told. */
class Told implements World {
  time = 1000
  visible = true
  timers: { at: number; what: () => void }[] = []
  now = () => this.time
  isVisible = () => this.visible
  after = (ms: number, what: () => void) => {
    const timer = { at: this.time + ms, what }
    this.timers.push(timer)
    return timer
  }
  cancel = (timer: unknown) => {
    this.timers = this.timers.filter((one) => one !== timer)
  }
  async pass(ms: number) {
    const until = this.time + ms
    for (;;) {
      const next = this.timers.filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)[0]
      if (next === undefined) break
      this.time = next.at
      this.cancel(next)
      next.what()
      await settled()
    }
    this.time = until
    await settled()
  }
}
const settled = () => new Promise<void>((done) => setImmediate(done))

test('it asks at once and then at its pace', async () => {
  const world = new Told()
  let asked = 0
  const poll = new Poll(world, 2000, async () => ++asked, () => {})
  poll.start()
  await settled()
  assert.equal(asked, 1)
  await world.pass(6000)
  assert.equal(asked, 4)
  assert.deepEqual(poll.state, { data: 4, at: 7000, failing: null })
  poll.stop()
  await world.pass(60_000)
  assert.equal(asked, 4)
})

test('it sleeps while nobody looks and asks at once when somebody does', async () => {
  const world = new Told()
  let asked = 0
  const poll = new Poll(world, 2000, async () => ++asked, () => {})
  poll.start()
  await settled()
  world.visible = false
  poll.seen()
  await world.pass(3_600_000)
  assert.equal(asked, 1)
  assert.equal(world.timers.length, 0)
  world.visible = true
  poll.seen()
  await settled()
  assert.equal(asked, 2)
})

test('it asks ever more seldom while it is refused, keeps the last picture and says since when', async () => {
  const world = new Told()
  let fail = false
  let asked = 0
  const poll = new Poll(world, 2000, async () => {
    asked++
    if (fail) throw new Refused(503, 'busy')
    return 'picture'
  }, () => {})
  poll.start()
  await settled()
  fail = true
  await world.pass(2000)
  assert.deepEqual(poll.state, { data: 'picture', at: 1000, failing: { since: 1000, message: 'busy', status: 503, tries: 1, again: 5000 } })
  // 2 + 4 + 8 + 16 + 30 + 30 s
  await world.pass(90_000)
  assert.equal(asked, 2 + 6)
  assert.equal(poll.state.failing?.since, 1000)
  fail = false
  poll.hurry()
  await settled()
  assert.deepEqual(poll.state.failing, null)
  assert.deepEqual([1, 2, 3, 4, 5, 50].map(backoff), [2000, 4000, 8000, 16_000, 30_000, 30_000])
})

test('what is gone is not shown any more', async () => {
  const world = new Told()
  let gone = false
  const poll = new Poll(world, 2000, async () => {
    if (gone) throw new Refused(404, 'there is no node n1')
    return 'n1'
  }, () => {})
  poll.start()
  await settled()
  gone = true
  await world.pass(2000)
  assert.equal(poll.state.data, null)
  assert.equal(poll.state.failing?.status, 404)
})

test('an answer that comes after a pause is nobody’s, and a slow one is asked for more seldom', async () => {
  const world = new Told()
  const answers: ((value: string) => void)[] = []
  const poll = new Poll(world, 2000, () => new Promise<string>((answer) => answers.push(answer)), () => {})
  poll.start()
  world.visible = false
  poll.seen()
  answers[0]?.('late')
  await settled()
  assert.equal(poll.state.data, null)
  world.visible = true
  poll.seen()
  world.time += 5000
  answers[1]?.('slow')
  await settled()
  assert.equal(poll.state.data, 'slow')
  assert.deepEqual(world.timers.map(({ at }) => at - world.time), [15_000])
})
