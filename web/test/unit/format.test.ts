import assert from 'node:assert/strict'
import { test } from 'node:test'
import { age, ago, amountOf, bytes, clock, cores, exact, figure, grouped, percent, plural, quantity, UNKNOWN, words } from '../../src/format.ts'

const plain = (text: string) => text.replace(/[\u00a0\u202f]/g, ' ')

test('what is not known is a dash and never a zero', () => {
  for (const write of [cores, bytes, percent, age, clock, exact]) {
    assert.equal(write(null), UNKNOWN)
    assert.equal(write(undefined), UNKNOWN)
  }
  assert.equal(percent(NaN), UNKNOWN)
  assert.equal(clock('yesterday'), UNKNOWN)
  assert.equal(cores(0), '0')
  assert.equal(plain(bytes(0)), '0 B')
})

test('figures have as many digits as help', () => {
  for (const [value, text] of [[0.0434, '0.043'], [0.436, '0.44'], [4.36, '4.4'], [4, '4'], [10, '10'], [100, '100'], [43.21, '43.2'], [432.1, '432'], [4321, '4 321'], [1234567, '1 234 567'], [-0.0001, '0'], [-2.5, '-2.5']] as const) {
    assert.equal(plain(figure(value)), text)
  }
  assert.equal(exact(5.6154), '5.615')
  assert.equal(exact(40), '40')
  assert.equal(plain(grouped('1234.5678')), '1 234.5678')
})

test('memory is written in the largest step that leaves a number before the point', () => {
  for (const [value, text] of [[1023, '1 023 B'], [1024, '1 KiB'], [1536, '1.5 KiB'], [34359738368, '32 GiB'], [1024 ** 3 - 1, '1 GiB'], [9e9, '8.4 GiB'], [-1024, '-1 KiB']] as const) {
    assert.equal(plain(bytes(value)), text)
  }
  assert.equal(plain(amountOf('cpu', 1)), '1 core')
  assert.equal(plain(amountOf('cpu', 6.5)), '6.5 cores')
  assert.equal(plain(amountOf('memory', 1024)), '1 KiB')
})

test('shares, ages and counts are written as people say them', () => {
  for (const [share, text] of [[0, '0 %'], [0.0512, '5.1 %'], [0.513, '51 %'], [0.996, '100 %'], [1.2, '120 %']] as const) assert.equal(plain(percent(share)), text)
  for (const [seconds, text] of [[3, '3 s'], [99, '99 s'], [100, '2 min'], [3599, '60 min'], [7200, '2 h'], [200000, '2 d'], [-4, '0 s']] as const) assert.equal(plain(age(seconds)), text)
  assert.equal(ago(0.4), 'now')
  assert.equal(plain(ago(12)), '12 s ago')
  assert.equal(plain(plural(1, 'node')), '1 node')
  assert.equal(plain(plural(5000, 'node')), '5 000 nodes')
  assert.equal(words('interPodAffinity'), 'inter pod affinity')
  assert.match(clock('2026-01-01T12:03:04Z'), /^\d\d:03:04$/)
})

test('quantities are read as Kubernetes writes them', () => {
  for (const [text, value] of [['5', 5], ['1500m', 1.5], ['2Gi', 2 * 2 ** 30], ['100k', 1e5], ['1e3', 1000], ['1.5E2', 150], ['.5', 0.5], ['250u', 0.00025], ['12E', 12e18], ['-1', -1]] as const) {
    assert.equal(quantity(text)?.toPrecision(12), value.toPrecision(12), text)
  }
  for (const text of ['', 'm', '1 Gi', '5x', '1e', null]) assert.equal(quantity(text), null, String(text))
})
