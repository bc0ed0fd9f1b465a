import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Happening } from '../../src/api.ts'
import { act, Buffer, byNode, follow, merged, nodeOf, placements } from '../../src/happenings.ts'

const item = (seq: number, of: Partial<Happening> = {}): Happening => ({ seq, at: new Date(Date.UTC(2026, 0, 1) + seq * 5000).toISOString(), type: 'Normal', reason: 'Scheduled', kind: 'Pod', about: `shop/web-${seq}`, node: 'n1', from: 'x', group: 'decision', text: '', count: 1, ...of })
const range = (from: number, to: number, of: Partial<Happening> = {}) => Array.from({ length: to - from + 1 }, (_, at) => item(from + at, of))

test('a flood is bounded, keeps the newest, and pushes nothing else out', () => {
  const buffer = new Buffer()
  buffer.take({ next: 1, dropped: false, items: [item(1, { group: 'protection', reason: 'Evicted' })] }, 0)
  for (let page = 0; page < 100; page++) {
    const since = buffer.next
    const first = 2 + page * 3000 + 2000
    buffer.take({ next: first + 999, dropped: true, items: range(first, first + 999) }, since)
  }
  assert.equal(buffer.of('decision').length, 5000)
  assert.equal(buffer.of('decision')[0]?.seq, 2 + 99 * 3000 + 2999)
  assert.equal(buffer.of('protection').length, 1)
  assert.equal(buffer.skipped, 100 * 2000, 'what was passed over is counted')
})

test('what was seen before is not taken again', () => {
  const buffer = new Buffer()
  buffer.take({ next: 3, dropped: false, items: range(1, 3) }, 0)
  buffer.take({ next: 4, dropped: false, items: range(2, 4) }, 3)
  assert.deepEqual(buffer.of('decision').map(({ seq }) => seq), [4, 3, 2, 1])
  const { version } = buffer
  buffer.take({ next: 4, dropped: false, items: [] }, 4)
  assert.equal(buffer.version, version, 'nothing new is no change')
})

test('a program that begins anew is read anew', async () => {
  const buffer = new Buffer()
  buffer.take({ next: 500, dropped: false, items: range(1, 500) }, 0)
  const asked: number[] = []
  await follow(buffer, async (since) => {
    asked.push(since)
    return { next: 2, dropped: false, items: since === 0 ? range(1, 2, { about: 'new/one' }) : [] }
  })
  assert.deepEqual(asked, [500, 0])
  assert.deepEqual(buffer.of('decision').map(({ about }) => about), ['new/one', 'new/one'])
  assert.equal(buffer.next, 2)
})

test('what happened is told by its time, and by number where that is the same', () => {
  const buffer = new Buffer()
  const at = (second: number) => `2026-01-01T12:00:0${second}.000000Z`
  buffer.take({ next: 3, dropped: false, items: [item(1, { at: at(5) }), item(2, { at: at(1) }), item(3, { at: at(5) })] }, 0)
  assert.deepEqual(buffer.of('decision').map(({ seq }) => seq), [3, 1, 2])
})

test('times are compared as times, however many digits they have', () => {
  const buffer = new Buffer()
  const at = ['2026-01-01T12:00:05.3Z', '2026-01-01T12:00:05Z', '2026-01-01T12:00:05.300001Z', '2026-01-01T12:00:04.999999Z']
  buffer.take({ next: 4, dropped: false, items: at.map((at, seq) => item(seq + 1, { at })) }, 0)
  assert.deepEqual(buffer.of('decision').map(({ seq }) => seq), [3, 1, 2, 4])
})

test('a program that begins anew is noticed though it has told more than the one before', async () => {
  const buffer = new Buffer()
  buffer.take({ epoch: 'a', next: 3, dropped: false, items: range(1, 3) }, 0)
  const asked: number[] = []
  await follow(buffer, async (since) => {
    asked.push(since)
    return { epoch: 'b', next: 9, dropped: false, items: range(since + 1, 9, { about: 'new/one' }) }
  })
  assert.deepEqual(asked, [3, 0])
  assert.deepEqual(buffer.of('decision').map(({ about }) => about), Array(9).fill('new/one'))
})

test('why nothing is known is kept until something is', () => {
  const buffer = new Buffer()
  buffer.take({ next: 0, problem: 'may not list events', dropped: false, items: [] }, 0)
  assert.equal(buffer.problem, 'may not list events')
  const { version } = buffer
  buffer.take({ next: 0, problem: null, dropped: false, items: [] }, 0)
  assert.equal(buffer.problem, null)
  assert.notEqual(buffer.version, version, 'views are drawn anew')
})

test('groups that are not known are kept as others', () => {
  const buffer = new Buffer()
  buffer.take({ next: 1, dropped: false, items: [item(1, { group: 'new' as 'other' })] }, 0)
  assert.equal(buffer.of('other').length, 1)
})

test('acts are told by their reasons', () => {
  const of = (reason: string) => act(item(1, { reason }))
  assert.deepEqual(['Throttled', 'Reclaimed', 'Evicted', 'EvictionBlocked', 'Restored', 'RestoreTriggered', 'AvoidanceTriggered', 'Rebalanced', 'LoadTaintAdded', 'Pulled'].map(of), ['slowed', 'slowed', 'gone', 'stays', 'back', 'line', 'line', 'moved', 'taint', 'other'])
})

test('what was done is told by node, a move once, and who is still slowed', () => {
  const done = (seq: number, of: Partial<Happening>) => item(seq, { group: 'protection', node: null, ...of })
  const items = [
    done(9, { about: 'b/1', reason: 'Restored' }),
    item(8, { group: 'rebalance', reason: 'Rebalanced', kind: 'Node', about: 'n2', node: 'n2', text: 's/web goes to n3: cpu', at: '2026-01-01T00:00:40Z' }),
    item(7, { group: 'rebalance', reason: 'Rebalanced', about: 's/web', node: 'n2', text: 'goes to n3: cpu', at: '2026-01-01T00:00:40Z' }),
    done(6, { about: 'b/2', reason: 'Throttled' }),
    done(5, { about: 'b/1', reason: 'Throttled' }),
    done(4, { kind: 'Node', about: 'n1', reason: 'AvoidanceTriggered', text: 'mixed/cpu-slow triggered action squeeze' }),
    done(3, { about: 'b/9', reason: 'Evicted' }),
  ]
  const placed = placements([item(2, { about: 'b/1' }), item(1, { about: 'b/2' }), item(0, { about: 'b/1', node: 'old' })])
  const groups = byNode(items, placed)
  assert.deepEqual(groups.map(({ node, done, slowed }) => [node, done.length, slowed]), [['n1', 4, ['b/2']], ['n2', 1, []], ['', 1, []]])
  assert.equal(groups[0]?.done[3]?.pod, null, 'the name of a rule is not a pod')
  assert.equal(groups[1]?.done[0]?.pod, 's/web')
  assert.deepEqual(items.map((one) => nodeOf(one, placed)), ['n1', 'n2', 'n2', 'n1', 'n1', 'n1', null])
  assert.deepEqual(merged(items.slice(3), items.slice(0, 5).reverse()).map(({ seq }) => seq), [9, 8, 7, 6, 5, 4, 3])
})
