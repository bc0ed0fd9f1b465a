import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as api from '../../src/api.ts'
import { parse, toFleet, toNode, toPod } from '../../src/route.ts'
import { path, roundUp } from '../../src/ui/chart.tsx'
import * as fleet from '../../src/fleet.ts'
import { inTurn } from '../../src/nodes.ts'
import { inUnit } from '../../src/format.ts'
import { gap } from '../../src/ui/lines.tsx'
import { decisive, ranked, refusals, whyChosen, whyThen } from '../../src/verdicts.ts'

const verdict = (node: string, fits: boolean, score: number | null): api.Verdict => ({ node, fits, score, reasons: [], scores: null, hotValue: 0, terms: [], load: null, counterfactual: null, warnings: [] })

test('an address is the view it names, and nonsense is the cluster', () => {
  assert.deepEqual(parse('').route, { view: 'cluster' })
  assert.deepEqual(parse('#/data?q=a').route, { view: 'data' })
  assert.equal(parse('#/?sort=name&q=a%20b').params.get('q'), 'a b')
  assert.deepEqual(parse(toNode('a/b c')).route, { view: 'node', name: 'a/b c' })
  assert.deepEqual(parse(toPod('shop/web-1')).route, { view: 'pod', namespace: 'shop', name: 'web-1' })
  assert.deepEqual(parse(toFleet('placement', 'team/steady')).route, { view: 'placement', namespace: 'team', name: 'steady' })
  assert.deepEqual(parse(toFleet('binding', 'quota')).route, { view: 'binding', namespace: '', name: 'quota' }, 'in no namespace')
  for (const hash of ['#/node', '#/placement/only', '#/binding/only', '#/pod/only', '#/%E0%A4%A', '#main']) assert.deepEqual(parse(hash).route, { view: 'cluster' }, hash)
})

test('the chosen node comes first, then those that fit, each by score', () => {
  const nodes = [verdict('c', false, 99), verdict('b', true, 60), verdict('a', true, 70), verdict('d', true, 70), verdict('e', false, null)]
  assert.deepEqual(ranked(nodes, 'd').map(({ node }) => node), ['d', 'a', 'b', 'c', 'e'])
  assert.deepEqual(ranked(nodes, 'd', 'c').map(({ node }) => node), ['d', 'c', 'a', 'b', 'e'], 'where it is comes second')
  assert.match(whyChosen(nodes, 'd') ?? '', /one of 2 nodes that have the same, highest score, 70/)
  assert.match(whyChosen([verdict('a', true, 74), verdict('b', true, 71), verdict('c', false, 99)], 'a') ?? '', /highest score.*74.*b with 71/)
  assert.match(whyChosen([verdict('a', true, 74), verdict('c', false, 99)], 'a') ?? '', /only one/)
  assert.equal(whyChosen([verdict('a', true, 60), verdict('b', true, 71)], 'a'), null, 'nothing is said that the figures do not show')
})

test('how many nodes refused a pod is said with why', () => {
  assert.equal(refusals({ resources: 2, line: 4, cordon: 0 }), '4 would pass the line, 2 have too little that nobody requested')
  assert.equal(refusals({ attachLimit: 1 }), '1 refused it: attach limit')
  assert.equal(refusals({}), '')
})

test('by what a pod is where it is, and why there, is said as it was then', () => {
  const decided = (node: string | null, of: Partial<api.Decision> = {}): api.Decision => ({ at: '2026-01-01T00:00:00Z', scheduler: 's', node, message: null, feasibleNodes: 3, refusedNodes: {}, score: 93, next: { node: 'n4', score: 91 }, ...of })
  const [here, there, nowhere] = [decided('n7'), decided('n9'), decided(null)]
  assert.equal(decisive([there, here, nowhere], 'n7'), here)
  assert.equal(decisive([there, nowhere], 'n7'), null, 'another decision says nothing of where it is')
  assert.equal(decisive([nowhere, there], null), nowhere, 'it waits: the newest')
  assert.equal(decisive([], null), null)
  assert.equal(whyThen(here), 'Score 93; next was n4 with 91.')
  assert.equal(whyThen(decided('n7', { next: { node: 'n4', score: 93 } })), 'Score 93, as n4 had.')
  assert.equal(whyThen(decided('n7', { next: null, feasibleNodes: 1 })), 'Score 93; no other node could take it.')
  assert.equal(whyThen(decided('n7', { score: null })), null, 'of a program that did not keep it')
})

test('a line that is passed while enough is on its way gives nothing back', () => {
  const of = (value: number | null) => ({ rule: 'r', metric: 'm', unit: '%', line: 65, used: 70, action: 'a', preview: false, phase: 'triggered', gap: value, gapUnit: 'millicores' })
  assert.equal(gap(of(157), true), '0.157\u00a0cores to release')
  assert.equal(gap(of(-157), true), 'enough is on its way')
  assert.equal(gap(of(-157), false), '0.157\u00a0cores may be given back')
  assert.equal(gap(of(null), true), '–')
})

test('a line has gaps where nothing is known', () => {
  assert.equal(path([1, 2, null, 3, null, 4, 5], (x) => x, (y) => y), 'M0.0 1.0L1.0 2.0M3.0 3.0h.01M5.0 4.0L6.0 5.0')
  assert.equal(path([null, null], (x) => x, (y) => y), '')
})

test('the top of a plot is a round number', () => {
  assert.deepEqual([0, 0.3, 1, 1.2, 2.2, 4, 7, 11, 480].map(roundUp), [1, 0.5, 1, 2, 2.5, 5, 10, 20, 500])
})

test('an answer of another shape is said to be one', () => {
  assert.throws(() => api.cluster({ at: 'x', targets: {}, sources: [] }), /the answer has no nodes/)
  assert.throws(() => api.cluster(null), /no nodes, no sources, no at, no targets/)
  assert.throws(() => api.nodeDetail([]), /no terms/)
})

const candidate = (cluster: string, total: number | null): fleet.Candidate => ({ cluster, total, filteredBy: null, reason: null, scores: {}, margin: null, held: false, load: null })
const placement = (selected: string[], clusters: fleet.Candidate[]): fleet.PlacementExplanation => ({ placement: 'a/b', at: '', selected, published: [], unscheduled: 0, clusters, source: null, margin: null, warnings: [] })

test('why a placement selects whom it selects is said by the points that decide', () => {
  const all = [candidate('east', 224), candidate('north', 140), candidate('west', null)]
  assert.match(fleet.whySelected(placement(['east'], all)) ?? '', /most points: 224; the next is north with 140/)
  assert.match(fleet.whySelected(placement(['east', 'north'], [...all, candidate('south', -3)])) ?? '', /last of them, north, has 140; the next is south with -3/)
  assert.match(fleet.whySelected(placement(['east', 'north'], all)) ?? '', /Every cluster that may be selected is/)
  assert.equal(fleet.whySelected(placement([], all)), null)
})

test('where a binding is, and what prioritizers are called, is said for people', () => {
  assert.equal(fleet.where([{ name: 'east', replicas: 4 }, { name: 'west' }]), 'east 4, west')
  assert.equal(fleet.where([]), 'nowhere')
  assert.equal(fleet.prioritizer('ResourceRatioCPU'), 'resource ratio CPU')
  assert.equal(fleet.prioritizer('AddOn/load/cpuRatio'), 'add on/load/cpu ratio')
})

test('a program that shows no fleet says so by nothing, and any other shape is refused', () => {
  assert.equal(fleet.fleet(null), null)
  assert.throws(() => fleet.fleet({ apis: [] }), /no placements, no bindings, no at, no clusters/)
})

test('pods are shown in the turns of the agent, and who has none comes last, without a number', () => {
  const pods = ['a', 'b', 'c'].map((pod) => ({ pod }))
  const turn = (pod: string, left: string | null = null, candidate: boolean | null = null) => ({ pod, protected: left, candidate })
  assert.deepEqual(inTurn(pods, [turn('c'), turn('gone'), turn('a')]), { turns: [{ pod: 'c' }, { pod: 'a' }], rest: [{ pod: 'b' }] })
  assert.deepEqual(inTurn(pods, [turn('c', 'DaemonSet'), turn('a', null, false), turn('b', null, true)]), { turns: [{ pod: 'b' }], rest: [{ pod: 'a' }, { pod: 'c' }] })
  assert.deepEqual(inTurn(pods, null), { turns: pods, rest: [] })
})

test('amounts are told in the unit of their metric', () => {
  assert.deepEqual([inUnit(2500, 'millicores'), inUnit(1000, 'millicores'), inUnit(2 ** 30, 'bytes'), inUnit(87.5, '%'), inUnit(3, '')].map((text) => text.replaceAll('\u00a0', ' ')), ['2.5 cores', '1 core', '1 GiB', '87.5 %', '3'])
})
