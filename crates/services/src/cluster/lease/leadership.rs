//! May I write?

use crate::cluster::write::Permit;
use crate::ctx;
use arc_swap::ArcSwapOption;
use loadline_core::lease::{Reading, Right};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// What stands for "never": as far as timers go.
const THIRTY_YEARS: Duration = Duration::from_hours(30 * 365 * 24);

/// Where time comes from.
#[derive(Clone, Debug)]
pub struct Clock {
    start: Instant,
    wall: ctx::Clock,
}

impl Clock {
    /// The system's clocks; tokio's where a test has stopped it.
    #[must_use]
    pub fn system() -> Self {
        Self::with_wall(ctx::Clock::default())
    }

    /// With another clock on the wall.
    #[must_use]
    pub fn with_wall(wall: ctx::Clock) -> Self {
        Self { start: Instant::now(), wall }
    }

    pub(super) fn now(&self) -> Reading {
        Reading { monotonic: self.start.elapsed(), wall: self.wall.now() }
    }

    /// A time of the elector's as one of tokio's.
    pub(super) fn instant(&self, monotonic: Duration) -> Instant {
        self.start + monotonic.min(THIRTY_YEARS)
    }
}

/// Says whether this process may write. Cheap to clone, and to ask: no lock, two clocks.
#[derive(Clone, Debug)]
pub struct Leadership(Option<Arc<Published>>);

#[derive(Debug)]
pub(super) struct Published {
    pub clock: Clock,
    lease: String,
    right: ArcSwapOption<Right>,
    term: watch::Sender<Term>,
    pub slow_paths: AtomicU64,
}

/// The time between becoming leader and losing it, counted: a short interruption is one all the same.
#[derive(Clone, Copy, Debug, Default)]
struct Term {
    number: u64,
    leads: bool,
}

/// For `leader_election_master_status` and `leader_election_slowpath_total`, with the label `name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures {
    /// The Lease's name.
    pub name: String,
    /// 1 if this process leads.
    pub master_status: u8,
    /// How often a leader had to read its Lease before it could renew it.
    pub slowpath_total: u64,
}

impl Leadership {
    /// Of what is served.
    pub const LABELS: [&str; 1] = ["name"];

    /// Without leader election: always may write.
    #[must_use]
    pub fn always() -> Self {
        Self(None)
    }

    pub(super) fn elected(lease: &str, clock: Clock) -> (Self, Arc<Published>) {
        let published = Arc::new(Published {
            clock,
            lease: lease.to_owned(),
            right: ArcSwapOption::empty(),
            term: watch::Sender::default(),
            slow_paths: AtomicU64::new(0),
        });
        (Self(Some(published.clone())), published)
    }

    /// May a write be sent now? Ask right before each: yes is true for no longer than [`Leadership::until`].
    #[must_use]
    pub fn may_write(&self) -> bool {
        self.0.as_ref().is_none_or(|published| published.right().is_some())
    }

    /// When the right ends unless it is renewed; none without the right. A write should not outlive it by more than the
    /// time between renew deadline and lease duration. Without leader election it is far away.
    #[must_use]
    pub fn until(&self) -> Option<Instant> {
        match &self.0 {
            None => Some(Instant::now() + THIRTY_YEARS),
            Some(published) => published.right().map(|right| published.clock.instant(right.until())),
        }
    }

    /// How long the right still holds; none without the right.
    #[must_use]
    pub fn left(&self) -> Option<Duration> {
        self.until().map(|until| until.saturating_duration_since(Instant::now()))
    }

    /// For a [`Writer`](crate::cluster::Writer): sends nothing without the right, and waits for no answer longer than it
    /// holds.
    #[must_use]
    pub fn permit(&self) -> Permit {
        let leadership = self.clone();
        Arc::new(move || leadership.left())
    }

    /// Waits until this process leads; for ever, if the election ends first.
    pub async fn acquired(&self) {
        if let Some(published) = &self.0 {
            published.wait_for(|term| term.leads).await;
        }
    }

    /// Waits until this process does not lead, or did not for a moment. A jump of the wall clock may be told a retry
    /// period late unless somebody asks [`Leadership::may_write`], which knows at once. Without leader election it waits
    /// for ever.
    pub async fn lost(&self) {
        let Some(published) = &self.0 else { return std::future::pending().await };
        let begun = published.term.borrow().number;
        published.wait_for(|term| !term.leads || term.number != begun).await;
    }

    /// What to show; nothing without leader election.
    #[must_use]
    pub fn figures(&self) -> Option<Figures> {
        self.0.as_ref().map(|published| Figures {
            name: published.lease.clone(),
            master_status: u8::from(published.right().is_some()),
            slowpath_total: published.slow_paths.load(Ordering::Relaxed),
        })
    }
}

impl Published {
    async fn wait_for(&self, wanted: impl FnMut(&Term) -> bool) {
        // Fails when the sender is gone, and that is here.
        let _ = self.term.subscribe().wait_for(wanted).await;
    }

    /// The right, if it holds. One that is once found ended is thrown away: it must not come back with the clock.
    fn right(&self) -> Option<Right> {
        let right = self.right.load();
        let found = **right.as_ref()?;
        if found.holds(self.clock.now()) {
            return Some(found);
        }
        // Unless a newer one has come meanwhile.
        self.right.compare_and_swap(&*right, None);
        // Whoever waits to lead must wait from now on, not be told at once and again and again until the elector looks.
        self.term.send_if_modified(|term| {
            let ended = term.leads && self.right.load().is_none();
            term.leads &= !ended;
            ended
        });
        None
    }

    /// Tells everybody; true if this is news.
    pub fn publish(&self, right: Option<Right>) -> bool {
        if self.right.load().as_deref() != right.as_ref() {
            self.right.store(right.map(Arc::new));
        }
        self.term.send_if_modified(|term| {
            let news = term.leads != right.is_some();
            term.leads = right.is_some();
            term.number += u64::from(news && term.leads);
            news
        })
    }
}

impl Collector for Leadership {
    /// Under client-go's names.
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Some(Figures { name, master_status, slowpath_total }) = self.figures() else { return Ok(()) };
        let labels = [("name", name.as_str())];
        let help = "Whether this process leads: 1, or stands by: 0";
        let mut status =
            encoder.encode_descriptor("leader_election_master_status", help, None, MetricType::Gauge)?;
        ConstGauge::new(i64::from(master_status)).encode(status.encode_family(&labels)?)?;
        let help = "Renewals of the lease for which it had to be read first";
        let mut slow =
            encoder.encode_descriptor("leader_election_slowpath", help, None, MetricType::Counter)?;
        ConstCounter::new(slowpath_total).encode(slow.encode_family(&labels)?)
    }
}
