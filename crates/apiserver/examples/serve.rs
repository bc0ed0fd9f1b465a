//! Serves an empty cluster on a port: `cargo run -p loadline-apiserver --example serve -- 8001`.

use loadline_apiserver::ApiServer;
use std::net::{Ipv4Addr, SocketAddr};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port = std::env::args().nth(1).unwrap_or_else(|| "8001".to_owned()).parse()?;
    let listening = ApiServer::default().listen(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
    println!("kubectl --server {} get namespaces", listening.url());
    listening
        .serve(async {
            let _ = tokio::signal::ctrl_c().await;
        })
        .await?;
    Ok(())
}
