//! `serve`: the studies as a web page and an HTTP API.

mod desk;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use plimsoll_report::{CHART_SCRIPT, CHART_STYLE};
use plimsoll_scenario::Diagnostic;
use plimsoll_web::{Charts, Config, app, serve};
use serde_json::json;
use tokio::net::TcpListener;

use self::desk::Commands;
use super::{either, tell};
use crate::args::{Global, ServeArgs};
use crate::failure::Failure;

/// Serves until Ctrl-C.
pub(super) fn answer(
    args: &ServeArgs,
    global: &Global,
    err: &mut dyn Write,
) -> Result<String, Failure> {
    let workspace = args.workspace.canonicalize().map_err(|error| {
        let name = args.workspace.display().to_string();
        Failure::one(
            Diagnostic::about("unreadable-file", name, format!("cannot be opened: {error}"))
                .help("give the directory of your scenarios by `--workspace`"),
        )
    })?;
    let token = token(args.token_file.as_deref())?;
    // Whoever panics within an answer says so here: the client hears only that it was a bug.
    std::panic::set_hook(Box::new(|info| {
        let _ = writeln!(std::io::stderr(), "plimsoll: a bug of ours: {info}");
    }));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| failed(&error.to_string(), "is anything left to start threads with?"))?;
    let outcome = runtime.block_on(async {
        let listener = TcpListener::bind(args.listen).await.map_err(|error| {
            failed(
                &format!("cannot listen at {}: {error}", args.listen),
                "give another address by `--listen`, such as `127.0.0.1:0` for any free port",
            )
        })?;
        let address = listener.local_addr().map_err(|error| failed(&error.to_string(), ""))?;
        let charts = Charts { style: CHART_STYLE, script: CHART_SCRIPT };
        let config = Config::new(address, token, charts).map_err(|error| {
            failed(
                &error.to_string(),
                "set `PLIMSOLL_TOKEN` or give `--token-file`; `openssl rand -hex 16` makes one",
            )
        })?;
        let limits = config.limits().clone();
        let desk = Arc::new(Commands::new(workspace, global));
        let url = format!("http://{address}/");
        tell(global, err, &format!("serving at {url} (Ctrl-C ends it)"));
        serve(listener, app(desk, config), &limits, ended()).await.map_err(|error| {
            failed(&format!("the server ended: {error}"), "is the address still there?")
        })?;
        Ok(url)
    });
    // Work that nobody waits for any more is not waited for either.
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    let url = outcome?;
    Ok(either(
        global,
        || json!({ "schema": "plimsoll/serve/v1", "address": url }),
        || "ended\n".to_owned(),
    ))
}

/// Until somebody ends it.
pub(super) async fn ended() {
    let interrupt = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        let Ok(mut term) =
            tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        else {
            let _ = interrupt.await;
            return;
        };
        tokio::select! {
            _ = interrupt => {}
            _ = term.recv() => {}
        }
    }
    #[cfg(not(unix))]
    {
        let _ = interrupt.await;
    }
}

fn token(file: Option<&Path>) -> Result<Option<String>, Failure> {
    let Some(path) = file else {
        return Ok(std::env::var("PLIMSOLL_TOKEN").ok().filter(|token| !token.is_empty()));
    };
    let text = crate::files::read_text(path)?;
    Ok(text.lines().next().map(|line| line.trim().to_owned()))
}

fn failed(message: &str, help: &str) -> Failure {
    let diagnostic = Diagnostic::about("no-server", "serve", message);
    Failure::one(if help.is_empty() { diagnostic } else { diagnostic.help(help) })
}
