//! When does somebody want us to end?

use tokio_util::sync::CancellationToken;

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

/// Runs a component until it ends or somebody ends it; then it is told to stop and waited for.
///
/// # Errors
/// What the component ended with.
pub async fn until_ended<E>(
    running: impl Future<Output = Result<(), E>>,
    stop: &CancellationToken,
    ended: impl Future<Output = &'static str>,
) -> anyhow::Result<()>
where
    E: std::error::Error + Send + Sync + 'static,
{
    tokio::pin!(running);
    tokio::select! {
        result = &mut running => return Ok(result?),
        why = ended => tracing::info!(why, "ending"),
    }
    stop.cancel();
    Ok(running.await?)
}
