//! `loadline apiserver`: only the API server.

use crate::args::Apiserver;
use crate::{out, signal};
use anyhow::{Context, Result, bail};
use loadline_apiserver::{ApiServer, Config};

pub async fn run(args: &Apiserver) -> Result<()> {
    let token = args.token_file.as_deref().map(|path| {
        let shown = path.display();
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read the token file {shown}"))?;
        let token = text.trim();
        if token.is_empty() {
            bail!("the token file {shown} is empty: expected a token");
        }
        Ok(token.to_owned())
    });
    let server = ApiServer::new(Config { token: token.transpose()?, ..Config::default() });
    let ended = signal::ended();
    let listening = server.listen(args.listen).await?;
    let open = if server.requires_token() { "with the token" } else { "without a token" };
    out::line(&format!("API server at {}, {open}", listening.url()));
    out::line(&format!("  kubectl --server {} get namespaces", listening.url()));
    listening
        .serve(async {
            ended.await;
        })
        .await?;
    Ok(())
}
