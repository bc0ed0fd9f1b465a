//! When does somebody want us to end?

use tokio_util::sync::CancellationToken;

/// Resolves on Ctrl-C, and on a request to terminate.
pub async fn ended() -> &'static str {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            return tokio::select! {
                _ = tokio::signal::ctrl_c() => "Ctrl-C",
                _ = terminate.recv() => "a request to terminate",
            };
        }
    }
    let _ = tokio::signal::ctrl_c().await;
    "Ctrl-C"
}

/// Runs a component until it ends or somebody ends it; then it is told to stop and waited for.
///
/// # Errors
/// What the component ended with.
pub async fn until_ended<E>(
    running: impl Future<Output = Result<(), E>>,
    stop: &CancellationToken,
) -> anyhow::Result<()>
where
    E: std::error::Error + Send + Sync + 'static,
{
    tokio::pin!(running);
    tokio::select! {
        result = &mut running => return Ok(result?),
        why = ended() => tracing::info!(why, "ending"),
    }
    stop.cancel();
    Ok(running.await?)
}
