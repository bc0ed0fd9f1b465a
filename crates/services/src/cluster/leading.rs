//! What does a component need that writes while it leads? Its writer, its Events, what is counted of both, and an order in
//! which to end.

use crate::cluster::lease::{Checked, Clock, Election, Leadership};
use crate::cluster::{Calls, Connection, Recorder, Writer};
use crate::ctx::Ctx;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A candidate that writes nothing while it does not lead. Without a lease it is the only one.
#[derive(Debug)]
pub struct Leading {
    pub leadership: Leadership,
    pub writer: Writer,
    pub events: Recorder,
    recording: JoinHandle<()>,
    electing: Option<JoinHandle<()>>,
    release: CancellationToken,
}

impl Leading {
    /// Begins to stand for election, under the name of a component.
    #[must_use]
    pub fn start(
        ctx: &Ctx,
        connection: &Connection,
        component: &'static str,
        lease: Option<Checked>,
    ) -> Self {
        let (election, leadership) = match lease {
            Some(checked) => {
                let clock = Clock::with_wall(ctx.clock.clone());
                let (election, leadership) = Election::with_clock(connection, checked, ctx.seed(), clock);
                (Some(election), leadership)
            }
            None => (None, Leadership::always()),
        };
        let writer = Writer::new(connection.clone(), component).permitted(leadership.permit());
        let (events, recording) = Recorder::of(ctx, writer.clone(), component);
        ctx.metrics.register(|registry| {
            registry.register_collector(&leadership, &Leadership::LABELS);
            let mut own = registry.below(&component.replace('-', "_"));
            own.register_collector(connection.calls(), &Calls::LABELS);
            events.counts().register(&mut own);
        });
        let release = CancellationToken::new();
        let electing = election.map(|election| {
            let (recorder, clock) = (events.clone(), ctx.clock.clone());
            tokio::spawn(election.run(release.clone(), move |change| {
                recorder.record(change.lease.clone(), change.happened(), clock.now());
            }))
        });
        Self { leadership, writer, events, recording: tokio::spawn(recording), electing, release }
    }

    /// Lets the lease go, after the last write: then the next leader may begin at once. Events end with the process.
    pub async fn end(self) {
        let _ = self.recording.await;
        self.release.cancel();
        if let Some(electing) = self.electing {
            let _ = electing.await;
        }
    }
}
