//! What does every component get? Its name, what ends it, where it shows figures and whom it tells.

pub use crate::metrics::Metrics;
use jiff::Timestamp;
use std::fmt;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What a component runs in. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Ctx {
    /// Who this process is among others like it.
    pub identity: Arc<str>,
    /// Told when the end is near: from then on it is not ready, so that nobody new is sent here, and works on.
    pub leaving: CancellationToken,
    /// Told when it is time to end.
    pub stop: CancellationToken,
    /// Where metrics are registered.
    pub metrics: Metrics,
    /// Who wants to know what happens.
    pub notices: Notices,
    /// What time it is here.
    pub clock: Clock,
    /// What pauses are spread by; without, the clock and the process say.
    pub seed: Option<u64>,
}

impl Ctx {
    /// A process of that name, ended by that token.
    #[must_use]
    pub fn new(identity: &str, stop: CancellationToken) -> Self {
        // Whoever is to end is leaving.
        let leaving = stop.child_token();
        Self { identity: identity.into(), leaving, stop, ..Self::default() }
    }

    /// Spreads the pauses of many processes.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(|| self.clock.nanos() ^ u64::from(std::process::id()))
    }

    /// The time, read once per cycle.
    #[must_use]
    pub fn now(&self) -> Now {
        self.clock.read()
    }
}

/// A clock on the wall, which may be set and differ from others. Clones are the same.
#[derive(Clone, Default)]
pub struct Clock(Option<Arc<dyn Fn() -> Timestamp + Send + Sync>>);

impl Clock {
    /// One that says what the function says; the default says what the system's does.
    #[must_use]
    pub fn new(says: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(says)))
    }

    /// What it says.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.0.as_ref().map_or_else(Timestamp::now, |says| says())
    }

    /// The same, with the time of timers.
    #[must_use]
    pub fn read(&self) -> Now {
        Now { clock: self.now(), at: Instant::now() }
    }

    /// What it says, as a number.
    #[must_use]
    pub fn nanos(&self) -> u64 {
        u64::try_from(self.now().as_nanosecond()).unwrap_or(1)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Clock" } else { "the system's clock" })
    }
}

/// Something a person watching would want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Who says it, such as `deployment` or `scheduler`.
    pub from: &'static str,
    /// What it is about.
    pub about: String,
    /// What happened.
    pub what: String,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.from, self.about, self.what)
    }
}

/// Takes notices; without a listener they go to the log alone.
#[derive(Clone, Debug, Default)]
pub struct Notices(Option<mpsc::Sender<Notice>>);

impl Notices {
    /// For one listener, who may be so many behind; what is more is dropped.
    #[must_use]
    pub fn to(listener: mpsc::Sender<Notice>) -> Self {
        Self(Some(listener))
    }

    /// Tells; never waits.
    pub fn tell(&self, from: &'static str, about: impl fmt::Display, what: impl Into<String>) {
        let notice = Notice { from, about: about.to_string(), what: what.into() };
        tracing::info!(from, about = notice.about, "{}", notice.what);
        if let Some(listener) = &self.0 {
            let _ = listener.try_send(notice);
        }
    }
}

/// The time, as objects have it and as timers have it. Read once per cycle.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    pub clock: Timestamp,
    pub at: Instant,
}

impl Now {
    /// By the system's clock, for whoever looks once and is no component.
    #[must_use]
    pub fn read() -> Self {
        Clock::default().read()
    }
}
