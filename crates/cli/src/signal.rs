//! When does somebody want us to end?

use clap::Args;
use loadline_services::Ctx;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The flag of what others ask.
#[derive(Clone, Copy, Debug, Args)]
pub struct Shutdown {
    /// How long to go on answering once told to end, not ready any more: until nobody is sent here
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = crate::args::delay)]
    pub shutdown_delay_duration: Duration,
}

/// Resolves on Ctrl-C, and on a request to terminate. Both are noticed from this call on, not from when it is awaited: whoever
/// is told that we run may end us at once.
pub fn ended() -> impl Future<Output = &'static str> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let signals =
            signal(SignalKind::interrupt()).and_then(|one| Ok((one, signal(SignalKind::terminate())?)));
        async move {
            match signals {
                Ok((mut interrupt, mut terminate)) => tokio::select! {
                    _ = interrupt.recv() => "Ctrl-C",
                    _ = terminate.recv() => "a request to terminate",
                },
                // Without handlers the system ends us.
                Err(_) => std::future::pending().await,
            }
        }
    }
    #[cfg(not(unix))]
    async {
        let _ = tokio::signal::ctrl_c().await;
        "Ctrl-C"
    }
}

/// How a component ends.
#[derive(Clone, Debug)]
pub struct End {
    /// Tells that it is not ready any more.
    pub leaving: CancellationToken,
    /// Tells it to end.
    pub stop: CancellationToken,
    /// From the one to the other: whoever sends others here has to hear of it first.
    pub delay: Duration,
}

impl End {
    /// That of a component, without waiting for anybody.
    #[must_use]
    pub fn of(ctx: &Ctx) -> Self {
        Self { leaving: ctx.leaving.clone(), stop: ctx.stop.clone(), delay: Duration::ZERO }
    }
}

/// Runs a component until it ends or somebody ends it; then it is told so and waited for. Who asks for that again waits for nobody
/// else.
///
/// # Errors
/// What the component ended with.
pub async fn until_ended<E>(
    running: impl Future<Output = Result<(), E>>,
    end: &End,
    ended: impl Future<Output = &'static str>,
) -> anyhow::Result<()>
where
    E: std::error::Error + Send + Sync + 'static,
{
    tokio::pin!(running);
    let why = tokio::select! {
        result = &mut running => return Ok(result?),
        why = ended => why,
    };
    // Whoever reads that it ends finds it so.
    let again = self::ended();
    end.leaving.cancel();
    tracing::info!(why, "ending");
    if !end.delay.is_zero() {
        tokio::select! {
            result = &mut running => return Ok(result?),
            why = again => tracing::info!(why, "ending at once"),
            () = tokio::time::sleep(end.delay) => {}
        }
    }
    end.stop.cancel();
    Ok(running.await?)
}
