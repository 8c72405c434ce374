//! Serves a desk that makes its answers up, to look at the page: `cargo run -p plimsoll-web --example fake -- PORT CHARTS.CSS CHARTS.JS`.

#[path = "../tests/it/support/mod.rs"]
mod support;

use std::sync::Arc;

use plimsoll_web::{Charts, Config, Limits, serve};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let port: u16 = arguments.next().unwrap_or_default().parse().unwrap_or(7070);
    let mut read = || -> std::io::Result<&'static str> {
        let text = arguments.next().map(std::fs::read_to_string).transpose()?.unwrap_or_default();
        Ok(Box::leak(text.into_boxed_str()))
    };
    let charts = Charts { style: read()?, script: read()? };
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    let config = Config::new(listener.local_addr()?, None, charts)?;
    let app = plimsoll_web::app(Arc::new(support::FakeDesk::default()), config);
    let interrupted = async { drop(tokio::signal::ctrl_c().await) };
    serve(listener, app, &Limits::default(), interrupted).await?;
    Ok(())
}
