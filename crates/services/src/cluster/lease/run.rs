//! What is sent, and what is told?

use super::leadership::{Clock, Leadership, Published};
use super::object::Lease;
use super::options::Checked;
use crate::cluster::connection::{Ask, Call, Cause, Connection, Media, Verb};
use crate::cluster::events::{Happened, Regarding, Severity};
use crate::cluster::resource::LEASES;
use http::Method;
use loadline_core::lease::{Elector, Lock, Loss, Record, Request, Revision, Step};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::sleep_until;
use tokio_util::sync::CancellationToken;

/// What a candidate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Leader,
    /// One that waits for its turn.
    Candidate,
}

/// This process leads from now on, or leads no more. Displays as client-go's Events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleChange {
    pub role: Role,
    pub identity: String,
    pub lease: Regarding,
}

impl fmt::Display for RoleChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.role {
            Role::Leader => "became leader",
            Role::Candidate => "stopped leading",
        };
        write!(f, "{} {what}", self.identity)
    }
}

impl RoleChange {
    /// As an Event on the Lease.
    #[must_use]
    pub fn happened(&self) -> Happened {
        Happened {
            severity: Severity::Normal,
            reason: "LeaderElection",
            action: "LeaderElection",
            note: self.to_string(),
        }
    }
}

/// One candidate, to be run.
#[derive(Debug)]
pub struct Election {
    connection: Connection,
    lock: Lock,
    elector: Elector,
    seat: Seat,
}

/// Whoever runs the election sits here; with it goes the right.
#[derive(Debug)]
struct Seat(Arc<Published>);

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.publish(None);
    }
}

impl Election {
    /// A candidate, and what its component asks. `seed` spreads the pauses of many candidates.
    ///
    /// It shares the connection's client and counters, not its limits: a renewal must not wait behind other requests.
    #[must_use]
    pub fn new(connection: &Connection, checked: Checked, seed: u64) -> (Self, Leadership) {
        Self::with_clock(connection, checked, seed, Clock::system())
    }

    /// The same by another clock.
    #[must_use]
    pub fn with_clock(
        connection: &Connection,
        checked: Checked,
        seed: u64,
        clock: Clock,
    ) -> (Self, Leadership) {
        let connection = connection.apart();
        let Checked { settings, lock } = checked;
        let elector = Elector::new(settings, lock.identity.clone(), seed);
        let (leadership, published) = Leadership::elected(&lock.lease.name, clock);
        (Self { connection, lock, elector, seat: Seat(published) }, leadership)
    }

    /// Stands for election until it is told to stop, then lets go of the lease. Stop it when no write is on its way any
    /// more. Dropping it instead keeps others waiting until the lease runs out.
    pub async fn run(self, stop: CancellationToken, tell: impl FnMut(RoleChange)) {
        let Self { connection, lock, elector, seat } = self;
        let wire = Wire { connection, lock, lease: None };
        let mut run = Run { wire, elector, seat, tell, told: Told::default(), read: false, stopping: false };
        run.drive(&stop).await;
    }
}

/// What came of a request.
enum Answer {
    /// What a read found.
    Found(Option<(Lease, Record, Revision)>),
    Written(Lease, Revision),
    Failed(Cause, String),
}

/// The Lease as it is asked for.
struct Wire {
    connection: Connection,
    lock: Lock,
    /// As last read or written.
    lease: Option<Lease>,
}

impl Wire {
    /// Sends one request, once.
    async fn ask(&self, request: &Request, deadline: Duration) -> Answer {
        let (of, lease) = (&self.lock.lease, self.lease.as_ref());
        let (verb, method, path, body) = match (request, lease) {
            (Request::Read, _) => (Verb::Get, Method::GET, LEASES.object(of), None),
            (Request::Create(record), _) => {
                (Verb::Create, Method::POST, LEASES.collection(&of.namespace), Some(Lease::new(of, record)))
            }
            (Request::Update(record, revision) | Request::Release(record, revision), Some(lease)) => {
                (Verb::Update, Method::PUT, LEASES.object(of), Some(lease.with(record, revision)))
            }
            (Request::Update(..) | Request::Release(..), None) => {
                return Answer::Failed(Cause::Malformed, "the Lease was never read".to_owned());
            }
        };
        let call = Call { verb, resource: LEASES, subresource: "" };
        let body = body.map(|lease| lease.to_bytes()).unwrap_or_default();
        let ask = Ask { call, method, path, content_type: "application/json", accept: Media::Json, body };
        match self.connection.call(ask, deadline).await {
            Ok(answer) => match Lease::read(&answer) {
                Ok((lease, record, revision)) if verb == Verb::Get => {
                    Answer::Found(Some((lease, record, revision)))
                }
                Ok((lease, _, revision)) => Answer::Written(lease, revision),
                Err(error) => Answer::Failed(Cause::Malformed, format!("cannot read the answer: {error}")),
            },
            Err(failure) if verb == Verb::Get && failure.cause == Cause::NotFound => Answer::Found(None),
            Err(failure) => Answer::Failed(failure.cause, failure.to_string()),
        }
    }
}

/// What was logged, so that it is not logged again.
#[derive(Debug, Default)]
struct Told {
    holder: Option<String>,
    failure: Option<Cause>,
}

struct Run<F> {
    wire: Wire,
    elector: Elector,
    seat: Seat,
    tell: F,
    told: Told,
    /// Was the last request a read?
    read: bool,
    stopping: bool,
}

impl<F: FnMut(RoleChange)> Run<F> {
    async fn drive(&mut self, stop: &CancellationToken) {
        loop {
            let now = self.seat.0.clock.now();
            let next = self.elector.step(now);
            // Before anything is sent: whoever asks must know what the elector knows.
            self.publish();
            match next {
                Step::Lost(loss) => self.lost(&loss),
                Step::Wait(until) => {
                    let until = self.seat.0.clock.instant(until);
                    tokio::select! {
                        biased;
                        () = sleep_until(until) => {}
                        () = stop.cancelled(), if !self.stopping => self.stop(),
                    }
                }
                Step::Send(request, by) => {
                    let deadline = by.saturating_sub(now.monotonic);
                    tokio::select! {
                        biased;
                        answer = self.wire.ask(&request, deadline) => self.take(answer),
                        () = stop.cancelled(), if !self.stopping => self.stop(),
                    }
                }
                Step::Done => return,
            }
        }
    }

    fn publish(&mut self) {
        let right = self.elector.right();
        if self.seat.0.publish(right) && right.is_some() {
            let Lock { lease, identity } = &self.wire.lock;
            tracing::info!(%lease, identity, "became leader");
            self.tell(Role::Leader);
        }
    }

    fn lost(&mut self, loss: &Loss) {
        let Lock { lease, identity } = &self.wire.lock;
        tracing::warn!(%lease, identity, reason = %loss, "lost the lease");
        self.tell(Role::Candidate);
    }

    fn stop(&mut self) {
        let led = self.elector.right().is_some();
        self.stopping = true;
        self.elector.release(self.seat.0.clock.now());
        self.publish();
        if led {
            let Lock { lease, identity } = &self.wire.lock;
            tracing::info!(%lease, identity, "releasing the lease");
            self.tell(Role::Candidate);
        }
    }

    fn tell(&mut self, role: Role) {
        let Lock { lease, identity } = &self.wire.lock;
        let uid = self.wire.lease.as_ref().map(Lease::uid).unwrap_or_default().into();
        let lease = Regarding { resource: LEASES, key: lease.clone(), uid };
        (self.tell)(RoleChange { role, identity: identity.clone(), lease });
    }

    /// Tells the elector what came of its request.
    fn take(&mut self, answer: Answer) {
        // Read now and not before: the elector must not think that it saw something before it was there.
        let now = self.seat.0.clock.now();
        let after_read = std::mem::replace(&mut self.read, matches!(answer, Answer::Found(_)));
        let failure = match answer {
            Answer::Found(None) => {
                self.elector.observe(None, now);
                None
            }
            Answer::Found(Some((lease, record, revision))) => {
                self.wire.lease = Some(lease);
                self.elector.observe(Some((record, revision)), now);
                None
            }
            Answer::Written(lease, revision) => {
                if after_read && self.elector.right().is_some() {
                    self.seat.0.slow_paths.fetch_add(1, Ordering::Relaxed);
                }
                self.wire.lease = Some(lease);
                self.elector.confirm(revision, now);
                None
            }
            Answer::Failed(cause, error) => {
                self.elector.fail(now);
                self.tell_failure(cause, &error);
                Some(cause)
            }
        };
        self.told.failure = failure;
        self.tell_holder();
    }

    /// The same failure every two seconds is told once.
    fn tell_failure(&self, cause: Cause, error: &str) {
        let lease = &self.wire.lock.lease;
        if self.told.failure == Some(cause) {
            tracing::debug!(%lease, error, "lease request failed again");
        } else {
            tracing::warn!(%lease, error, "lease request failed");
        }
    }

    fn tell_holder(&mut self) {
        let holder = self.elector.record().and_then(Record::holder);
        if holder != self.told.holder.as_deref() {
            let lease = &self.wire.lock.lease;
            tracing::info!(%lease, holder = holder.unwrap_or("nobody"), "the lease has another holder");
            self.told.holder = holder.map(str::to_owned);
        }
    }
}
