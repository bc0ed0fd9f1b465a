import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Amount, NodeRow } from '../../src/api.ts'
import { expected, histogram, inOrder, isOver, isStale, matching, pressing, room, sorted, state, totals } from '../../src/nodes.ts'

const amount = (of: Partial<Amount> = {}): Amount => ({ allocatable: 10, requested: 4, measured: 5, arriving: 0, departing: 0, line: 6.5, ageSeconds: 3, basis: 'measured', ...of })
const node = (name: string, cpu: Partial<Amount> = {}, of: Partial<NodeRow> = {}): NodeRow => ({ name, ready: true, cordoned: false, closed: null, coolingUntil: null, hotValue: 0, score: 50, pods: 1, pendingPods: 0, cpu: amount(cpu), memory: amount(), ...of })
const names = (nodes: readonly NodeRow[]) => nodes.map(({ name }) => name)

test('what will be used is measured + arriving − leaving, and unknown stays unknown', () => {
  assert.equal(expected(amount({ arriving: 1.5, departing: 0.5 })), 6)
  assert.equal(expected(amount({ measured: 1, departing: 3 })), 0)
  assert.equal(expected(amount({ measured: null, basis: 'nothing', arriving: 3 })), null)
  assert.equal(expected(amount({ measured: null, basis: 'estimates', arriving: 3 })), 3, 'pods were added up instead')
})

test('equality is not over the line, and without a line nothing is', () => {
  assert.equal(room(amount({ arriving: 1.5 })), 0)
  assert.equal(isOver(amount({ arriving: 1.5 })), false)
  assert.equal(isOver(amount({ arriving: 1.6 })), true)
  assert.equal(isOver(amount({ measured: 10, line: null })), false)
  assert.equal(room(amount({ measured: null, basis: 'nothing' })), null)
})

test('of a node that resource is told which is nearer to its line', () => {
  assert.equal(pressing(node('a')), 'cpu', 'alike')
  assert.equal(pressing(node('a', {}, { memory: amount({ measured: 7 }) })), 'memory')
  assert.equal(pressing(node('a', { measured: 9 }, { memory: amount({ measured: 7 }) })), 'cpu', 'further beyond it')
  assert.equal(pressing(node('a', { measured: null, basis: 'nothing' })), 'memory', 'what is not known is not near')
})

test('the worse state is told', () => {
  assert.equal(state(node('a', { measured: 9 }, { closed: 'threshold' }), 'cpu'), 'over')
  assert.equal(state(node('a', { measured: 9 }, { ready: false }), 'cpu'), 'away')
  assert.equal(state(node('a', {}, { closed: 'cooling' }), 'cpu'), 'closed')
  assert.equal(state(node('a', { measured: null, basis: 'nothing' }), 'cpu'), 'unknown')
  assert.equal(state(node('a', { measured: null, basis: 'nothing' }), 'memory'), 'ok')
})

test('nodes are in the order asked for, unknown last, alike by name as people count', () => {
  const nodes = [node('node-10'), node('node-2'), node('full', { measured: 9, ageSeconds: 50 }), node('dark', { measured: null, basis: 'nothing', ageSeconds: null }), node('big', { allocatable: 100, measured: 60, line: 65 })]
  assert.deepEqual(names(sorted(nodes, 'cpu', 'load')), ['full', 'big', 'node-2', 'node-10', 'dark'])
  assert.deepEqual(names(sorted(nodes, 'cpu', 'room')), ['full', 'big', 'node-2', 'node-10', 'dark'])
  assert.deepEqual(names(sorted(nodes, 'cpu', 'name')), ['big', 'dark', 'full', 'node-2', 'node-10'])
  assert.deepEqual(names(sorted(nodes, 'cpu', 'age')), ['dark', 'full', 'big', 'node-2', 'node-10'], 'never measured is oldest')
  assert.deepEqual(names(sorted(nodes, 'memory', 'load'))[0], 'big', 'all alike by memory: by name')
  assert.deepEqual(names(nodes)[0], 'node-10', 'what was given is left as it is')
})

test('a held order keeps its places, loses who is gone and appends who is new', () => {
  assert.deepEqual(names(inOrder([node('a'), node('b'), node('d')], ['c', 'b', 'a'])), ['b', 'a', 'd'])
})

test('all words of a filter must be there, in any case and order', () => {
  const nodes = ['Pool-A-1', 'pool-b-1', 'pool-a-2'].map((name) => node(name))
  assert.deepEqual(names(matching(nodes, ' 1 pool-a ', (one) => one.name)), ['Pool-A-1'])
  assert.equal(matching(nodes, '  ', (one) => one.name), nodes)
})

test('sums leave out what nobody measured and count it', () => {
  const sum = totals([node('a'), node('b', { measured: 7 }, { closed: 'threshold' }), node('c', { measured: null, basis: 'estimates', arriving: 3 }, { cordoned: true, hotValue: 2 })], 'cpu')
  assert.deepEqual(sum, { nodes: 3, allocatable: 30, requested: 12, measured: 12, measuredNodes: 2, measuredAllocatable: 20, expected: 15, expectedAllocatable: 30, line: 19.5, over: 1, closed: 1, stale: 1, away: 1, hot: 1 })
  assert.equal(totals([node('a', { line: null })], 'cpu').line, null)
})

test('every node is in one bin, or not known', () => {
  const { bins, unknown } = histogram([node('a'), node('b', { measured: 9.99 }), node('c', { measured: 13 }), node('d', { measured: null, basis: 'nothing' }), node('e', { measured: 0 }), node('f', { measured: 3 })], 'cpu', 10)
  assert.deepEqual(bins.map((bin) => bin.within + bin.over), [1, 0, 0, 1, 0, 1, 0, 0, 0, 2])
  assert.equal(bins[9]?.over, 2)
  assert.equal(unknown, 1)
})

test('a sample is fresh if the program says so, and never beyond five minutes', () => {
  assert.equal(isStale(amount({ ageSeconds: 300 })), false)
  assert.equal(isStale(amount({ ageSeconds: 301 })), true)
  assert.equal(isStale(amount({ ageSeconds: null })), true)
  assert.equal(isStale(amount({ basis: 'late' })), true)
})

test('twenty thousand nodes are put in order', () => {
  const many = Array.from({ length: 20_000 }, (_, at) => node(`node-${at}`, { measured: (at * 7919) % 10 }))
  const order = sorted(many, 'cpu', 'load')
  for (let at = 1; at < order.length; at++) assert.ok((order[at - 1]?.cpu.measured ?? 0) >= (order[at]?.cpu.measured ?? 0))
})
