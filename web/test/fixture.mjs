// A made-up cluster that answers as the program does, for tests and for working on the page:
//
//   node test/fixture.mjs [--nodes 40] [--port 8089] [--rate 2] [--fleet]
//
// A story goes round every two minutes: web moves in, the third node gets hot, its least important pods are slowed down,
// one is sent away, it cools and gives back. One node is measured late, one never, one is not ready.

import { createServer } from 'node:http'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const GIB = 2 ** 30
const ROUND = 120
const here = dirname(fileURLToPath(import.meta.url))

/** The same numbers for the same seed. */
function random(seed) {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state ^ (state >>> 15), state | 1) + 0x6d2b79f5) >>> 0
    return ((state ^ (state >>> 14)) >>> 0) / 2 ** 32
  }
}

/** How hot the third node is at a second of the story, as a share. */
export function heat(second) {
  const t = second % ROUND
  if (t < 15) return 0.52
  if (t < 30) return 0.52 + ((t - 15) / 15) * 0.36
  if (t < 50) return 0.88
  if (t < 80) return 0.88 - ((t - 50) / 30) * 0.38
  return 0.5
}

export class World {
  constructor({ nodes = 40, rate = 2, from = Date.now(), ahead = 0 } = {}) {
    this.rate = rate
    this.from = from
    this.ahead = ahead
    this.seq = 0
    this.items = []
    this.told = 0
    this.down = null
    /** Why Events cannot be read. */
    this.eventless = null
    this.epoch = Math.random().toString(16).slice(2)
    this.denied = new Set()
    const width = String(nodes - 1).length
    this.nodes = Array.from({ length: nodes }, (_, at) => {
      const chance = random(at * 7919 + 17)
      const cores = [8, 16, 32, 64][Math.floor(chance() * 4)]
      return { name: `node-${String(at).padStart(Math.max(2, width), '0')}`, cores, memory: cores * 4 * GIB, cpu: 0.2 + chance() * 0.4, mem: 0.25 + chance() * 0.35, asked: 0.35 + chance() * 0.5, phase: chance() * 6 }
    })
    this.hot = this.nodes[Math.min(3, nodes - 1)].name
  }

  second() {
    return (Date.now() - this.from) / 1000 + this.ahead
  }

  row(node, at) {
    const second = this.second()
    const hot = node.name === this.hot
    const share = hot ? heat(second) : node.cpu + 0.04 * Math.sin(second / 20 + node.phase)
    const never = at === 5
    const late = at === 6
    const waits = !hot && at % 9 === 0 ? 0.06 : 0
    const closed = hot && share > 0.65 ? 'threshold' : hot && second % ROUND > 70 && second % ROUND < 100 ? 'cooling' : null
    const amount = (all, used, asked) => ({
      allocatable: all, requested: all * asked, measured: never ? null : all * used, arriving: never ? all * asked * 0.8 : all * waits,
      departing: at % 31 === 30 ? all * 0.08 : 0, line: all * 0.65, ageSeconds: never ? null : late ? 160 : Math.floor(second % 15), basis: never ? 'estimates' : late ? 'late' : 'measured',
    })
    return {
      name: node.name, ready: at !== 8, cordoned: at === 9, closed, coolingUntil: closed === 'cooling' ? new Date(Date.now() + 20_000).toISOString() : null,
      hotValue: at % 4 === 0 ? 1 : 0, score: Math.round((1 - share) * 100), pods: 6 + (at % 20), pendingPods: waits > 0 ? 2 : 0,
      cpu: amount(node.cores, share, node.asked), memory: amount(node.memory, node.mem, node.asked * 0.8),
    }
  }

  rows() {
    return this.nodes.map((node, at) => this.row(node, at))
  }

  cluster() {
    this.advance()
    return {
      cluster: 'made-up', at: new Date().toISOString(), ready: true,
      sources: [
        { name: 'measurements', ageSeconds: Math.floor(this.second() % 15), problem: null },
        { name: 'measurements of pods', ageSeconds: Math.floor(this.second() % 15), problem: null },
        { name: 'annotations', ageSeconds: 412, problem: null },
        { name: 'nodes', ageSeconds: 0, problem: null },
        { name: 'pods', ageSeconds: 0, problem: null },
        { name: 'events', ageSeconds: this.eventless === null ? 1 : null, problem: this.eventless },
      ],
      targets: { cpu: 0.65, memory: 0.65 }, waitingPods: 2, nodes: this.rows(),
    }
  }

  terms(row) {
    const share = row.cpu.measured === null ? null : row.cpu.measured / row.cpu.allocatable
    return [
      { metric: 'cpu_usage_avg_5m', value: share, limit: 0.65, weight: 0.2, ageSeconds: 12, source: 'measured', reason: null },
      { metric: 'cpu_usage_max_avg_1h', value: share === null ? null : Math.min(1, share + 0.06), limit: 0.75, weight: 0.3, ageSeconds: 300, source: 'annotation', reason: null },
      { metric: 'cpu_usage_max_avg_1d', value: null, limit: null, weight: 0.5, ageSeconds: null, source: null, reason: 'warming up: 3 of 24 hours are known' },
      { metric: 'mem_usage_avg_5m', value: 0.43, limit: 0.65, weight: 0.2, ageSeconds: 12, source: 'measured', reason: null },
    ]
  }

  node(name) {
    const at = this.nodes.findIndex((node) => node.name === name)
    if (at < 0) return null
    this.advance()
    const row = this.row(this.nodes[at], at)
    const over = row.closed === 'threshold'
    const second = this.second()
    const chance = random(at + 3)
    const shown = {
      node: row, terms: this.terms(row),
      reasons: over ? [`cpu_usage_avg_5m ${(row.cpu.measured / row.cpu.allocatable).toFixed(2)} is over its limit 0.65`] : [],
      warnings: at === 6 ? ['the last sample is 160 s old: everything placed since is added'] : [],
      pods: Array.from({ length: row.pods }, (_, pod) => ({
        pod: `${pod < 3 ? 'batch/crunch' : 'shop/web-6c9d5f7b4'}-${at}x${pod}`, uid: `${name}-${pod}`, priority: pod < 3 ? -10 : pod * 10, qos: pod < 3 ? 'BestEffort' : 'Burstable',
        workload: pod === 5 ? null : pod < 3 ? 'Job/crunch' : 'ReplicaSet/web-6c9d5f7b4', arriving: pod === row.pods - 1 && row.pendingPods > 0,
        cpu: { requested: pod < 3 ? 0 : 0.5, measured: pod === row.pods - 1 ? null : Number((chance() * 1.2).toFixed(3)) }, memory: { requested: 2e8, measured: pod === row.pods - 1 ? null : Math.round(chance() * 4e8) },
      })),
      history: {
        stepSeconds: 15, end: new Date().toISOString(),
        cpu: Array.from({ length: 240 }, (_, i) => (i > 100 && i < 108 ? null : name === this.hot ? heat(second - (239 - i) * 15 * 0.1) : this.nodes[at].cpu + 0.05 * Math.sin(i / 9 + at))),
        memory: Array.from({ length: 240 }, (_, i) => this.nodes[at].mem + 0.02 * Math.sin(i / 30)),
      },
      happenings: this.items.filter((item) => item.node === name || item.about === name).slice(-30).reverse(),
    }
    return name === this.hot ? { ...shown, protection: this.protection(row, shown.pods) } : shown
  }

  pod(namespace, name, most) {
    if (namespace === 'nowhere') return null
    const [waiting, gone] = [name.startsWith('giant'), name.startsWith('gone')]
    const rows = this.rows()
    const line = (row, resource, incoming) => {
      const { measured, arriving, allocatable, basis } = row[resource]
      const text = (value) => (value === null ? null : resource === 'cpu' ? `${Math.round(value * 1000)}m` : String(Math.round(value)))
      return { measured: text(measured), pending: text(arriving), incoming, allocatable: text(allocatable), target: 0.65, pendingPods: [], sources: {}, basis }
    }
    const asks = waiting ? 40 : 0.5
    const verdicts = rows.slice(0, most).map((row) => {
      const [used, coming, all] = [row.cpu.measured ?? 0, row.cpu.arriving, row.cpu.allocatable]
      const over = used + coming + asks > row.cpu.line
      const reasons = [
        ...(row.closed === 'threshold' ? ['cpu_usage_avg_5m 0.88 is over its limit 0.65'] : []),
        ...(over ? [`cpu would pass the line: ${used.toFixed(1)} measured + ${Math.round(coming * 1000)}m pending + ${Math.round(asks * 1000)}m incoming is over ${Math.round(row.cpu.line * 1000)}m (0.65 of ${all})`] : []),
        ...(row.ready ? [] : ['the node has a taint node.kubernetes.io/not-ready that the pod does not tolerate']),
        ...(row.cordoned ? ['the node is cordoned'] : []),
      ]
      return {
        node: row.name, fits: reasons.length === 0, reasons, score: Math.round(row.score * 0.6 + 30),
        scores: { load: { base: row.score, hotPenalty: 10 * row.hotValue, final: Math.max(0, row.score - 10 * row.hotValue) }, leastAllocated: 70, balancedAllocation: 90, taintToleration: null, nodeAffinity: null, interPodAffinity: null, podTopologySpread: 100, imageLocality: 0 },
        hotValue: row.hotValue, terms: this.terms(row), load: { cpu: line(row, 'cpu', `${Math.round(asks * 1000)}m`), memory: line(row, 'memory', '200000000') },
        counterfactual: over ? `would fit if the cpu target were ${((used + coming + asks) / all).toFixed(2)}` : null, warnings: row.cpu.basis === 'late' ? ['the last sample is 160 s old'] : [],
      }
    })
    const best = verdicts.filter((one) => one.fits).sort((a, b) => b.score - a.score)[0]
    const at = new Date(Date.now() - 42_000).toISOString()
    const refused = verdicts.filter((one) => !one.fits).length
    const message = `0/${rows.length} nodes are available: ${refused} node(s) would pass the load line.`
    return {
      apiVersion: 'loadline.dev/v1alpha1', kind: 'PodExplanation', pod: `${namespace}/${name}`, node: waiting || gone ? null : 'node-00',
      decisions: [{ at, scheduler: 'default-scheduler', node: waiting ? null : 'node-00', message: waiting ? message : null, feasibleNodes: waiting ? 0 : verdicts.length - refused, refusedNodes: { line: refused }, ...this.grounds(rows, verdicts, waiting, line) }],
      moves: waiting ? undefined : [{ at, pod: 'shop/web-0', from: 'node-03', to: 'node-00', message: 'goes to node-00: cpu 8 of 10, over its line 6500m since 11:53:45' }],
      now: gone ? null : { at: new Date().toISOString(), anotherLikeIt: !waiting, recommendation: waiting ? null : { name: 'shop/web', message: 'Success', updated: at, ageSeconds: 42 }, node: best?.node ?? null, message: best === undefined ? message : null, moreNodes: Math.max(0, rows.length - most), nodes: verdicts },
    }
  }

  /** What a decision rested on. */
  grounds(rows, verdicts, waiting, line) {
    const limit = (resource) => (resource === 'cpu' ? `${Math.round(rows[0].cpu.line * 1000)}m` : String(Math.round(rows[0].memory.line)))
    const then = (resource, incoming) => ({ ...line(rows[0], resource, incoming), limit: limit(resource) })
    const no = verdicts.find((one) => !one.fits)
    return {
      score: waiting ? null : 93, next: waiting ? null : { node: 'node-04', score: 91 }, load: waiting ? null : { cpu: then('cpu', '500m'), memory: then('memory', '200000000') },
      refusals: no === undefined ? [] : [{ rule: 'line', node: no.node, reason: no.reasons[0] }],
    }
  }

  /** Three clusters, known to both, to one, and hardly at all. */
  fleet() {
    const cluster = (knownTo, cores, used, more = {}) => ({
      knownTo, leaving: false, taints: [], ageSeconds: 4, ...more,
      cpu: { allocatable: cores, requested: cores * 0.7, measured: used === null ? null : cores * used },
      memory: { allocatable: cores * 4 * GIB, requested: cores * 2 * GIB, measured: used === null ? null : cores * used * 3 * GIB },
    })
    const both = ['Open Cluster Management', 'Karmada']
    return {
      at: new Date().toISOString(), problem: null,
      apis: [
        { name: 'Open Cluster Management', group: 'cluster.open-cluster-management.io', there: true, kinds: [{ kind: 'placements', count: 2, problem: null }, { kind: 'addonplacementscores', count: 0, problem: 'listing addonplacementscores: forbidden' }] },
        { name: 'Karmada', group: 'work.karmada.io', there: true, kinds: [{ kind: 'resourcebindings', count: 2, problem: null }] },
      ],
      clusters: { east: cluster(both, 96, 0.31), north: cluster(['Karmada'], 48, null, { ageSeconds: null }), west: cluster(both, 64, 0.62, { taints: ['cluster.open-cluster-management.io/unreachable:NoSelect'], ageSeconds: 400 }) },
      placements: [
        { placement: 'team/steady', selected: ['east'], satisfied: true, message: 'All required decisions have been scheduled' },
        { placement: 'team/wants-more', selected: [], satisfied: false, message: 'No ManagedClusterSetBindings found in placement namespace' },
      ], morePlacements: 0,
      bindings: [
        { binding: 'shop/web-deployment', kind: 'ResourceBinding', scheduler: 'default-scheduler', replicas: 6, clusters: [{ name: 'east', replicas: 4 }, { name: 'west', replicas: 2 }], scheduled: true, reason: 'Success', message: 'Binding has been scheduled successfully.' },
        { binding: 'quota', kind: 'ClusterResourceBinding', scheduler: 'default-scheduler', replicas: 0, clusters: [], scheduled: false, reason: 'NoClusterFit', message: '0/3 clusters are available: 3 cluster(s) did not match the placement cluster affinity constraint.' },
      ], moreBindings: 3,
    }
  }

  explained([kind, ...rest]) {
    const at = new Date().toISOString()
    if (rest.at(-1) === 'none') return null
    if (kind === 'placements') {
      const points = (ratio, steady) => ({ ResourceRatioCPU: { raw: ratio, weight: 2, weighted: 2 * ratio }, Steady: { raw: steady, weight: 1, weighted: steady } })
      return {
        placement: rest.join('/'), at, selected: ['east'], published: ['east'], unscheduled: 0, margin: 84, warnings: ['north says nothing about its resources'],
        source: { source: 'measured', oldest: at, ageSeconds: 6 },
        clusters: [
          { cluster: 'east', filteredBy: null, reason: null, scores: points(62, 100), total: 224, margin: 84, held: true, load: { timestamp: at, ageSeconds: 4, used: true } },
          { cluster: 'north', filteredBy: null, reason: 'it has 140 points, 84 fewer than the last that is selected', scores: points(null, 0), total: 140, margin: -84, held: false, load: { timestamp: at, ageSeconds: 900, used: false } },
          { cluster: 'west', filteredBy: 'TaintToleration', reason: 'it has a taint that is not tolerated: cluster.open-cluster-management.io/unreachable:NoSelect', scores: {}, total: null, margin: null, held: false, load: null },
        ],
      }
    }
    const division = {
      targets: [{ name: 'east', replicas: 4 }, { name: 'west', replicas: 2 }], shortfall: 1, affinity: null, warnings: [], result: { status: true, reason: 'Success', message: '' },
      feasible: [
        { name: 'east', tier: 0, score: 100, allocatable: 96, available: 14, confirmed: true, estimates: [{ by: 'general-estimator', count: 26 }, { by: 'scheduler-estimator', count: 14, ageSeconds: 2.2 }] },
        { name: 'west', tier: 0, score: 0, allocatable: 64, available: 2147483647, confirmed: false, estimates: [{ by: 'scheduler-estimator', count: null, problem: 'it does not answer', ageSeconds: 12 }] },
      ],
      filtered: [{ name: 'north', reason: 'cluster(s) had untolerated taint' }],
    }
    const remembered = rest.length === 2
    return {
      binding: `ResourceBinding ${rest.join('/')}`, scheduler: 'default-scheduler', ours: remembered, clusters: remembered ? division.targets : [],
      condition: { reason: 'Success', message: 'Binding has been scheduled successfully.' }, decision: remembered ? { at, why: 'replicas changed', ...division } : null,
      now: { at, why: 'replicas changed', wouldChange: true, would: ['west would get 3 if its estimate were 3'], ...division, targets: [{ name: 'east', replicas: 6 }] },
    }
  }

  /** What the agent of the third node sees. */
  protection(row, pods) {
    const share = (row.cpu.measured / row.cpu.allocatable) * 100
    const acting = share > 65
    const rule = (name, line, action) => ({ rule: `mixed/${name}`, metric: 'cpu_total_utilization', unit: '%', line, used: share, action, preview: name === 'cpu-evict', phase: share > line ? 'triggered' : 'idle', gap: share > line ? ((share - line) / 100) * row.cpu.allocatable * 1000 : null, gapUnit: 'millicores' })
    const turns = (order) => order.map((pod, at) => ({ pod: pod.pod, protected: at === pods.length - 1 ? 'DaemonSet' : null, candidate: acting ? at < 4 : null }))
    const at = new Date().toISOString()
    return {
      by: 'agent', at, rules: [rule('cpu-slow', 65, 'squeeze'), rule('cpu-evict', 85, 'leave'), { ...rule('memory', 90, 'leave'), metric: 'memory_total_usage', unit: 'bytes', line: 3e10, used: null, phase: 'error', gap: null }],
      orders: [{ metric: 'cpu_total_utilization', pods: turns([...pods].reverse()) }, { metric: 'memory_total_usage', pods: turns(pods) }],
      acts: [
        { at, act: 'throttled', pod: 'batch/crunch-3x0', container: 'main', rule: 'mixed/cpu-slow', resource: 'cpu', predicted: 400, measured: 380, pending: false },
        { at, act: 'evicted', pod: 'batch/crunch-3x2', container: null, rule: 'mixed/cpu-evict', resource: 'cpu', predicted: 900, measured: null, pending: true },
        { at, act: 'restored', pod: 'batch/crunch-3x1', container: 'main', rule: 'mixed/cpu-slow', resource: 'cpu', predicted: 200, measured: null, pending: false },
      ],
    }
  }

  say(second, fields) {
    this.seq += 1
    this.items.push({ seq: this.seq, at: new Date(this.from + (second - this.ahead) * 1000).toISOString(), type: 'Normal', kind: 'Pod', node: null, count: 1, ...fields })
    if (this.items.length > 10_000) this.items.splice(0, this.items.length - 10_000)
  }

  /** What happened up to now. */
  advance() {
    const until = Math.floor(this.second())
    for (; this.told < until; this.told++) {
      const [now, t] = [this.told, this.told % ROUND]
      for (let i = 0; i < this.rate; i++) {
        const node = this.nodes[(now * 31 + i * 7) % this.nodes.length].name
        const about = `shop/web-6c9d5f7b4-${(now * this.rate + i).toString(36).padStart(5, 'x')}`
        this.say(now, { reason: 'Scheduled', about, node, from: 'loadline-scheduler', group: 'decision', text: `Successfully assigned ${about} to ${node}` })
      }
      if (now % 11 === 3) {
        this.say(now, { type: 'Warning', reason: 'FailedScheduling', about: `batch/giant-${now % 3}`, from: 'loadline-scheduler', group: 'decision', count: 1 + Math.floor(now / 11), text: `0/${this.nodes.length} nodes are available: ${this.nodes.length} node(s) would pass the load line.` })
      }
      const on = (at, fields) => t === at && this.say(now, { from: 'loadline-agent', group: 'protection', node: this.hot, ...fields })
      on(24, { type: 'Warning', kind: 'Node', about: this.hot, reason: 'AvoidanceTriggered', text: 'mixed/cpu-slow triggered action squeeze' })
      on(26, { type: 'Warning', about: 'batch/crunch-3x0', reason: 'Throttled', text: 'mixed/cpu-slow: quota of main lowered to 160000 µs of 100000, releases 400' })
      on(27, { type: 'Warning', about: 'batch/crunch-3x1', reason: 'Throttled', node: null, text: 'mixed/cpu-slow: quota of main lowered to 120000 µs of 100000, releases 300' })
      on(40, { type: 'Warning', about: 'batch/crunch-3x2', reason: 'Evicted', text: 'mixed/cpu-evict: evicted for cpu, releases 900' })
      on(44, { type: 'Warning', about: 'shop/db-0', reason: 'EvictionBlocked', text: 'not evicted: the disruption budget shop/db lets no more pods go' })
      on(82, { kind: 'Node', about: this.hot, reason: 'RestoreTriggered', text: 'mixed/cpu-slow restored action squeeze' })
      on(84, { about: 'batch/crunch-3x0', reason: 'Restored', text: 'mixed/cpu-slow: quota of main raised to unlimited' })
      const moved = this.nodes[Math.min(12, this.nodes.length - 1)].name
      const move = 'goes to node-02: cpu 8 of 10, over its line 6500m since 11:53:45'
      if (t === 55) {
        this.say(now, { about: 'shop/web-1', node: moved, reason: 'Rebalanced', from: 'loadline-rebalance', group: 'rebalance', text: move })
        this.say(now, { kind: 'Node', about: moved, node: moved, reason: 'Rebalanced', from: 'loadline-rebalance', group: 'rebalance', text: `shop/web-1 ${move}` })
      }
      if (t === 60) this.say(now, { type: 'Warning', kind: 'Node', about: 'node-05', node: 'node-05', reason: 'LoadUnknown', from: 'loadline-annotator', group: 'data', text: 'nothing measured it for 5 min; what its pods are expected to use is added up instead' })
    }
  }

  happenings(since, limit) {
    this.advance()
    const epoch = this.epoch
    if (this.eventless !== null) return { epoch, next: 0, problem: this.eventless, dropped: false, items: [] }
    const items = this.items.filter((item) => item.seq > since).slice(-limit)
    return { epoch, problem: null, next: this.seq, dropped: since > 0 && items.length > 0 && items[0].seq > since + 1, items }
  }

  history() {
    const second = this.second()
    const points = (of) => Array.from({ length: 240 }, (_, i) => (i > 60 && i < 66 ? null : of(i, heat(second - (239 - i) * 3))))
    const shares = (base) => ({ measured: points((i) => base + 0.04 * Math.sin(i / 17)), requested: points((i) => 0.58 + 0.03 * Math.sin(i / 40)), expected: points((i) => base + 0.03 + 0.04 * Math.sin(i / 17)), worst: points((_, hot) => Math.max(0.61, hot)), overLine: points((_, hot) => (hot > 0.65 ? 1 : 0)) })
    return { stepSeconds: 15, end: new Date().toISOString(), cpu: shares(0.41), memory: shares(0.44), closed: points((i) => Math.round(2 + 2 * Math.sin(i / 25))), waiting: points((i) => (i % 90 > 70 ? 3 : 2)) }
  }
}

/** Serves a world and the page. */
export async function serve(world, { port = 0, fleet = false } = {}) {
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, 'http://127.0.0.1')
    const answer = (status, body) => {
      response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' })
      response.end(JSON.stringify(body))
    }
    if (url.pathname === '/') {
      const page = await readFile(join(here, '..', 'dist', 'index.html'))
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' })
      return response.end(page)
    }
    world.asked = (world.asked ?? 0) + 1
    const [, , , what, ...rest] = url.pathname.split('/').map(decodeURIComponent)
    if (world.down === 'hang') return
    if (world.down === 'cut') return request.socket.destroy()
    if (world.denied.has(what)) return answer(403, { error: `nodes.metrics.k8s.io is forbidden: the account may not list ${what}` })
    const found = (value, name) => (value === null ? answer(404, { error: `there is no ${name}` }) : answer(200, value))
    switch (what) {
      case 'cluster': return answer(200, world.cluster())
      case 'history': return answer(200, world.history())
      case 'nodes': return found(world.node(rest[0]), `node ${rest[0]}`)
      case 'pods': return found(world.pod(rest[0], rest[1], Number(url.searchParams.get('nodes') ?? 20)), `pod ${rest.join('/')}`)
      case 'happenings': return answer(200, world.happenings(Number(url.searchParams.get('since') ?? 0), Number(url.searchParams.get('limit') ?? 200)))
      case 'fleet': return rest.length === 0 ? answer(200, fleet ? world.fleet() : null) : found(world.explained(rest), rest.join('/'))
      default: return answer(404, { error: 'there is nothing here' })
    }
  })
  await new Promise((ready) => server.listen(port, '127.0.0.1', ready))
  return { address: `http://127.0.0.1:${server.address().port}/`, close: () => { server.closeAllConnections(); server.close() } }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const flag = (name, usual) => {
    const at = process.argv.indexOf(`--${name}`)
    return at < 0 ? usual : Number(process.argv[at + 1])
  }
  const { address } = await serve(new World({ nodes: flag('nodes', 40), rate: flag('rate', 2), ahead: flag('ahead', 0) }), { port: flag('port', 8089), fleet: process.argv.includes('--fleet') })
  console.log(address)
}
