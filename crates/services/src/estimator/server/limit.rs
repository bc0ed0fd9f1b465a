//! Who is let in, and for how long is an answer wanted?
//!
//! Every request has an end: its own deadline (`grpc-timeout`), or ours. When it comes, or when the caller goes, what
//! is being computed finds out the next time it looks.

use crate::estimator::metrics::{Method, Metrics};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::HeaderMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tonic::Status;

/// Answers that take longer are worth a line in the log.
const SLOW: Duration = Duration::from_millis(100);

/// Where requests come in.
pub(super) struct Gate {
    places: Semaphore,
    concurrency: usize,
    longest: Duration,
    metrics: Arc<Metrics>,
}

impl Gate {
    pub(super) fn new(concurrency: usize, longest: Duration, metrics: Arc<Metrics>) -> Self {
        // Beyond what a semaphore takes is no limit at all.
        let concurrency = concurrency.min(Semaphore::MAX_PERMITS);
        Self { places: Semaphore::new(concurrency), concurrency, longest: bounded(longest), metrics }
    }
}

/// A moment that far away is still one.
fn bounded(longest: Duration) -> Duration {
    longest.min(Duration::from_hours(24))
}

/// Lets a request in if there is room, answers for it when its time is over, and counts it.
pub(super) async fn admit(State(gate): State<Arc<Gate>>, mut request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let method = Method::of(request.uri().path());
    let Ok(_place) = gate.places.try_acquire() else {
        gate.metrics.answered(method, false, begun.elapsed());
        let text = format!("busy with {} requests, try again later", gate.concurrency);
        return Status::resource_exhausted(text).into_http();
    };
    let until = begun + asked(request.headers()).unwrap_or(gate.longest).min(gate.longest);
    let here = Here::default();
    let wanted = Wanted { until, gone: here.0.clone() };
    request.extensions_mut().insert(wanted.clone());
    let answer = tokio::time::timeout_at(until.into(), next.run(request)).await;
    let response = answer.unwrap_or_else(|_| wanted.over().into_http());
    // Failures say so at once; what goes well says so at the end.
    let fine = response.headers().get("grpc-status").is_none_or(|status| status == "0");
    let took = begun.elapsed();
    gate.metrics.answered(method, fine, took);
    if took > SLOW {
        tracing::info!(?method, ?took, fine, "a slow answer");
    }
    response
}

/// While this is there, somebody waits.
#[derive(Default)]
struct Here(Arc<AtomicBool>);

impl Drop for Here {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Is an answer still wanted?
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    until: Instant,
    gone: Arc<AtomicBool>,
}

impl Wanted {
    /// What was found out when the request came in.
    pub(super) fn of<T>(request: &tonic::Request<T>, longest: Duration) -> Self {
        let known = request.extensions().get::<Self>().cloned();
        known.unwrap_or_else(|| Self { until: Instant::now() + bounded(longest), gone: Arc::default() })
    }

    pub(super) fn still(&self) -> bool {
        !self.gone.load(Ordering::Relaxed) && Instant::now() < self.until
    }

    /// Why it is not.
    pub(super) fn over(&self) -> Status {
        if Instant::now() < self.until {
            Status::cancelled("the caller has gone")
        } else {
            Status::deadline_exceeded("there was not enough time for an answer")
        }
    }
}

/// How long the caller will wait: up to eight digits and a unit. One that cannot be read says nothing.
fn asked(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let digits = (1..=8).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit());
    let number: u64 = number.parse().ok().filter(|_| digits)?;
    match unit {
        "H" => Some(Duration::from_hours(number)),
        "M" => Some(Duration::from_mins(number)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_a_caller_gives_is_read_as_grpc_writes_it() {
        for (text, expected, why) in [
            ("3S", Some(Duration::from_secs(3)), "seconds"),
            ("2999m", Some(Duration::from_millis(2999)), "thousandths, as Go writes them"),
            ("99999999H", Some(Duration::from_hours(99_999_999)), "the most there can be"),
            ("1n", Some(Duration::from_nanos(1)), "the least"),
            ("0u", Some(Duration::ZERO), "no time at all"),
            ("5M", Some(Duration::from_mins(5)), "minutes"),
            ("100000000S", None, "nine digits are too many"),
            ("-1S", None, "no signs"),
            ("+1S", None, "no signs"),
            ("S", None, "a number is needed"),
            ("3", None, "a unit is needed"),
            ("3h", None, "this is no unit"),
            ("", None, "nothing"),
        ] {
            let headers = HeaderMap::from_iter([(
                http::HeaderName::from_static("grpc-timeout"),
                text.parse().unwrap(),
            )]);
            assert_eq!(asked(&headers), expected, "{text:?}: {why}");
        }
        assert_eq!(asked(&HeaderMap::new()), None);
    }

    #[test]
    fn an_answer_is_wanted_until_its_time_is_over_or_the_caller_goes() {
        let here = Here::default();
        let later = Instant::now() + Duration::from_hours(1);
        let wanted = Wanted { until: later, gone: here.0.clone() };
        assert!(wanted.still());
        let over = Wanted { until: Instant::now(), gone: here.0.clone() };
        assert!(!over.still());
        assert_eq!(over.over().code(), tonic::Code::DeadlineExceeded);
        drop(here);
        assert!(!wanted.still(), "nobody waits");
        assert_eq!(wanted.over().code(), tonic::Code::Cancelled);
    }
}
