// Why these clusters, and why not the others?

import * as api from '../fleet.ts'
import type { Candidate, PlacementExplanation } from '../fleet.ts'
import { age, clock, figure, plural } from '../format.ts'
import { usePolled } from '../store.ts'
import { useState } from 'preact/hooks'
import { Badge, Icon, Missing, Title, Waiting, Warnings } from './bits.tsx'

const FEW = 50

const SOURCES = {
  static: 'what its nodes have, whether taken or not',
  requested: 'what its nodes have, less what pods ask for',
  measured: 'what its nodes have, less what pods really use',
}

export function PlacementView({ namespace, name }: { namespace: string; name: string }) {
  const { data, failing } = usePolled(`fleet/placements/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`, api.placementExplanation, 5000)
  return (
    <>
      <p class="up"><a href="#/fleet">← The fleet</a></p>
      <Title>{namespace}/{name}</Title>
      {data !== null ? <Explained of={data} /> : failing === null ? <Waiting what="why it selects whom it selects" /> : failing.status === 404 ? (
        <p class="note">There is no placement of this name, or no longer: {failing.message}</p>
      ) : (
        <Missing what="Its reasons are" failing={failing} />
      )}
    </>
  )
}

function Explained({ of }: { of: PlacementExplanation }) {
  const [all, setAll] = useState(false)
  const published = of.published.join(', ')
  const same = [...of.published].sort().join() === [...of.selected].sort().join()
  const shown = all ? of.clusters : of.clusters.slice(0, FEW)
  return (
    <>
      <p class="lead">
        A placement of Open Cluster Management: it selects clusters by <b>points</b>, from those nothing keeps away.{' '}
        {of.source !== null && <>A cluster's free resources are {SOURCES[of.source.source]}{of.source.ageSeconds === null ? '' : `, as of ${age(of.source.ageSeconds)} ago at most`}.</>}
      </p>
      <div class={of.selected.length === 0 ? 'answer none' : 'answer'}>
        {of.selected.length === 0 ? <p><Icon of="no" /> <b>No cluster is selected.</b></p> : (
          <p><Icon of="star" /> <b>It selects {of.selected.join(', ')}.</b> {api.whySelected(of)}</p>
        )}
        <p class="muted">
          Asked at {clock(of.at)}. {same ? 'That is what is published.' : `Published is ${published === '' ? 'nothing yet' : published}.`}
          {of.unscheduled > 0 && ` ${plural(of.unscheduled, 'more cluster')} wanted and not found.`}
        </p>
      </div>
      <Warnings of={of.warnings} />
      <section aria-labelledby="candidates">
        <h2 id="candidates">Cluster by cluster <span class="muted">{of.clusters.length}</span></h2>
        {shown.map((one, at) => <One key={one.cluster} of={one} selected={of.selected.includes(one.cluster)} open={at === 0} />)}
        {shown.length < of.clusters.length && <p><button type="button" onClick={() => setAll(true)}>Show all {of.clusters.length}</button></p>}
      </section>
    </>
  )
}

function One({ of, selected, open }: { of: Candidate; selected: boolean; open: boolean }) {
  const [isOpen, setOpen] = useState(open)
  const points = Object.entries(of.scores)
  return (
    <details class={`verdict ${selected ? 'chosen' : of.total === null ? 'refused' : 'fits'}`} open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <span class="mark">{selected ? <Badge of="star" tone="good">selected</Badge> : of.total === null ? <Badge of="no" tone="bad">no</Badge> : <Badge of="dot" tone="calm">not now</Badge>}</span>
        <span class="name">{of.cluster}</span>
        <span class="score">{of.total === null ? '' : <>points <b>{of.total}</b></>}</span>
        <span class="why">{of.reason ?? ''}</span>
      </summary>
      {isOpen && (
        <div class="inside">
          {of.reason !== null && <ul class="reasons"><li><Icon of="no" /> {of.reason}</li></ul>}
          {of.held && <p class="but">It was selected a short while ago, and is not given up yet.</p>}
          {points.length > 0 && (
            <>
              <h3>Points {of.total}<span class="muted">, higher is better; each part from −100 to 100, times its weight</span></h3>
              <dl class="scores">
                {points.map(([name, { raw, weight, weighted }]) => (
                  <div key={name}>
                    <dt>{api.prioritizer(name)}</dt>
                    <dd>
                      <span class="meter" aria-hidden="true"><span style={{ width: `${Math.max(0, Math.min(100, ((raw ?? -100) + 100) / 2))}%` }} /></span>
                      <b>{figure(weighted)}</b>
                      <small>{raw === null ? 'nothing is known' : weight === 1 ? '' : `${figure(raw)} × ${figure(weight)}`}</small>
                    </dd>
                  </div>
                ))}
              </dl>
            </>
          )}
          {of.load !== null && <p class="muted">Its load was published {age(of.load.ageSeconds)} ago{of.load.used ? '.' : ', too long to be gone by.'}</p>}
        </div>
      )}
    </details>
  )
}
