//! What is sent, and what is told?

use super::leadership::{Clock, Leadership, Published};
use super::object;
use super::options::Checked;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{Api, PostParams};
use kube::{Client, Error};
use loadline_core::lease::{Elector, Lock, Loss, Record, Request, Revision, Step};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::time::{sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

/// Something others want to know, as an Event on the Lease or otherwise. Displays as client-go's messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// What happened.
    pub what: What,
    /// This candidate.
    pub identity: String,
    /// The Lease.
    pub lease: ObjectReference,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// This process leads.
    BecameLeader,
    /// This process leads no more.
    StoppedLeading,
}

impl Notice {
    /// The reason of an Event.
    pub const REASON: &str = "LeaderElection";
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.what {
            What::BecameLeader => "became leader",
            What::StoppedLeading => "stopped leading",
        };
        write!(f, "{} {what}", self.identity)
    }
}

/// One candidate, to be run.
pub struct Election {
    client: Client,
    lock: Lock,
    elector: Elector,
    seat: Seat,
}

impl fmt::Debug for Election {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Election").field("lock", &self.lock).finish_non_exhaustive()
    }
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
    /// A candidate, and what its component asks. `seed` spreads the pauses of many candidates. The client should not
    /// retry by itself (`default_retry` of its configuration): the election knows better when.
    #[must_use]
    pub fn new(client: Client, checked: Checked, seed: u64) -> (Self, Leadership) {
        Self::with_clock(client, checked, seed, Clock::system())
    }

    /// The same by another clock.
    #[must_use]
    pub fn with_clock(client: Client, checked: Checked, seed: u64, clock: Clock) -> (Self, Leadership) {
        let Checked { settings, lock } = checked;
        let elector = Elector::new(settings, lock.identity.clone(), seed);
        let (leadership, published) = Leadership::elected(&lock.name, clock);
        (Self { client, lock, elector, seat: Seat(published) }, leadership)
    }

    /// Stands for election until it is told to stop, then lets go of the lease. Stop it when no write is on its way any
    /// more. Dropping it instead keeps others waiting until the lease runs out.
    pub async fn run(self, stop: CancellationToken, tell: impl FnMut(Notice)) {
        let Self { client, lock, elector, seat } = self;
        let api = Api::namespaced(client, &lock.namespace);
        let stopping = false;
        let mut run =
            Run { api, lock, elector, seat, tell, stopping, lease: None, told: Told::default(), read: false };
        run.drive(&stop).await;
    }
}

/// What was logged, so that it is not logged again.
#[derive(Debug, Default)]
struct Told {
    holder: Option<String>,
    error: Option<String>,
}

struct Run<F> {
    api: Api<Lease>,
    lock: Lock,
    elector: Elector,
    seat: Seat,
    tell: F,
    stopping: bool,
    /// As last read or written.
    lease: Option<Lease>,
    told: Told,
    /// Was the last request a read?
    read: bool,
}

/// What came of a request.
enum Answer {
    /// What a read found.
    Found(Option<(Record, Revision)>),
    Written(Revision),
    Failed(String),
}

impl<F: FnMut(Notice)> Run<F> {
    async fn drive(&mut self, stop: &CancellationToken) {
        loop {
            let next = self.elector.step(self.seat.0.clock.now());
            // Before anything is sent: whoever asks must know what the elector knows.
            self.publish();
            match next {
                Step::Lost(loss) => self.lost(&loss),
                Step::Wait(until) => {
                    let until = self.seat.0.clock.instant(until);
                    tokio::select! {
                        () = sleep_until(until) => {}
                        () = stop.cancelled(), if !self.stopping => self.stop(),
                    }
                }
                Step::Send(request, by) => {
                    let by = self.seat.0.clock.instant(by);
                    tokio::select! {
                        answer = timeout_at(by, self.ask(&request)) => {
                            let late = || Answer::Failed("no answer in time".to_owned());
                            self.take(answer.unwrap_or_else(|_| (late(), None)));
                        }
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
            tracing::info!(lease = %self.name(), identity = self.lock.identity, "became leader");
            self.notify(What::BecameLeader);
        }
    }

    fn lost(&mut self, loss: &Loss) {
        tracing::warn!(lease = %self.name(), identity = self.lock.identity, reason = %loss, "lost the lease");
        self.notify(What::StoppedLeading);
    }

    fn stop(&mut self) {
        let led = self.elector.right().is_some();
        self.stopping = true;
        self.elector.release(self.seat.0.clock.now());
        self.publish();
        if led {
            tracing::info!(lease = %self.name(), identity = self.lock.identity, "releasing the lease");
            self.notify(What::StoppedLeading);
        }
    }

    fn notify(&mut self, what: What) {
        let lease = object::reference(&self.lock, self.lease.as_ref());
        (self.tell)(Notice { what, identity: self.lock.identity.clone(), lease });
    }

    fn name(&self) -> String {
        format!("{}/{}", self.lock.namespace, self.lock.name)
    }

    /// Sends one request, once.
    async fn ask(&self, request: &Request) -> (Answer, Option<Lease>) {
        let params = PostParams::default();
        let written = match (request, &self.lease) {
            (Request::Read, _) => return Self::found(self.api.get_opt(&self.lock.name).await),
            (Request::Create(record), _) => {
                self.api.create(&params, &object::new(&self.lock, record.clone())).await
            }
            (Request::Update(record, revision) | Request::Release(record, revision), Some(lease)) => {
                let lease = object::replaced(lease, record.clone(), revision);
                self.api.replace(&self.lock.name, &params, &lease).await
            }
            (Request::Update(..) | Request::Release(..), None) => {
                return (Answer::Failed("the Lease was never read".to_owned()), None);
            }
        };
        match written.map(|lease| (object::read(&lease), lease)) {
            Ok((Some((_, revision)), lease)) => (Answer::Written(revision), Some(lease)),
            Ok((None, _)) => (Answer::Failed(NO_REVISION.to_owned()), None),
            Err(error) => (Answer::Failed(error.to_string()), None),
        }
    }

    fn found(answer: Result<Option<Lease>, Error>) -> (Answer, Option<Lease>) {
        match answer {
            Ok(None) => (Answer::Found(None), None),
            Ok(Some(lease)) => match object::read(&lease) {
                Some(found) => (Answer::Found(Some(found)), Some(lease)),
                None => (Answer::Failed(NO_REVISION.to_owned()), None),
            },
            Err(error) => (Answer::Failed(error.to_string()), None),
        }
    }

    /// Tells the elector what came of its request.
    fn take(&mut self, (answer, lease): (Answer, Option<Lease>)) {
        // Read now and not before: the elector must not think that it saw something before it was there.
        let now = self.seat.0.clock.now();
        if let Some(lease) = lease {
            self.lease = Some(lease);
        }
        let read = matches!(answer, Answer::Found(_));
        match answer {
            Answer::Found(found) => {
                self.elector.observe(found, now);
                self.told.error = None;
            }
            Answer::Written(revision) => {
                if self.read && self.elector.right().is_some() {
                    self.seat.0.slow_paths.fetch_add(1, Ordering::Relaxed);
                }
                self.elector.confirm(revision, now);
                self.told.error = None;
            }
            Answer::Failed(error) => {
                self.elector.fail(now);
                self.failed(error);
            }
        }
        self.read = read;
        self.tell_holder();
    }

    /// The same failure every two seconds is told once.
    fn failed(&mut self, error: String) {
        if self.told.error.as_ref() == Some(&error) {
            tracing::debug!(lease = %self.name(), error, "lease request failed again");
        } else {
            tracing::warn!(lease = %self.name(), error, "lease request failed");
            self.told.error = Some(error);
        }
    }

    fn tell_holder(&mut self) {
        let holder = self.elector.record().and_then(Record::holder);
        if holder != self.told.holder.as_deref() {
            self.told.holder = holder.map(str::to_owned);
            tracing::info!(lease = %self.name(), holder = holder.unwrap_or("nobody"), "the lease has a new holder");
        }
    }
}

const NO_REVISION: &str = "the answer has no resourceVersion";
