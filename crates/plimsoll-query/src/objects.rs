//! Logs that are not on this disk: objects of a store, by URL.

use std::io::{self, Write as _};
use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt as _, parse_url_opts};
use plimsoll_ledger::{IngestError, LocalCopy, RemoteLog};
use url::Url;
use wildmatch::WildMatch;

/// An object of a store.
struct Object {
    store: Arc<dyn ObjectStore>,
    key: Key,
}

/// An object; those below a name that ends with `/`; or those that a pattern with `*` matches.
pub fn find(url: &str) -> Result<Vec<RemoteLog>, IngestError> {
    let unreadable = |source| IngestError::Unreadable { name: url.to_owned(), line: 0, source };
    let parsed = Url::parse(url).map_err(|error| unreadable(io::Error::other(error)))?;
    let plain_http = parsed.scheme() == "http";
    // Keys, regions and endpoints as the tools of each store read them, such as AWS_REGION.
    let known = ["AWS_", "GOOGLE_", "AZURE_"];
    let options = std::env::vars()
        .filter(|(name, _)| known.iter().any(|prefix| name.starts_with(prefix)))
        .chain(plain_http.then(|| ("allow_http".to_owned(), "true".to_owned())));
    let (store, key) =
        parse_url_opts(&parsed, options).map_err(|error| unreadable(cause(error)))?;
    let store: Arc<dyn ObjectStore> = Arc::from(store);
    let searched = url.ends_with('/') || url.contains('*');
    if !searched || parsed.scheme().starts_with("http") {
        return Ok(vec![Object { store, key }.log(url.to_owned(), false)]);
    }
    // A pattern is listed from the last folder that is written out.
    let fixed = key.as_ref().split('*').next().unwrap_or_default();
    let folder = match url.contains('*') {
        true => fixed.rsplit_once('/').map_or("", |(folder, _)| folder),
        false => fixed,
    };
    let pattern = url.contains('*').then(|| WildMatch::new(key.as_ref()));
    let listed = async {
        let prefix = Key::from(folder);
        store.list(Some(&prefix)).try_collect::<Vec<_>>().await
    };
    let mut keys: Vec<Key> = runtime()
        .and_then(|runtime| runtime.block_on(listed).map_err(cause))
        .map_err(unreadable)?
        .into_iter()
        .map(|meta| meta.location)
        .filter(|key| pattern.as_ref().is_none_or(|pattern| pattern.matches(key.as_ref())))
        .collect();
    keys.sort();
    if keys.is_empty() {
        let nothing = io::Error::new(io::ErrorKind::NotFound, "no object matches");
        return Err(unreadable(nothing));
    }
    let root = parsed.as_str().trim_end_matches(parsed.path());
    let object = |key: Key| {
        let name = format!("{root}/{key}");
        Object { store: Arc::clone(&store), key }.log(name, true)
    };
    Ok(keys.into_iter().map(object).collect())
}

impl Object {
    fn log(self, name: String, searched: bool) -> RemoteLog {
        RemoteLog { name, searched, copy: Box::new(move || self.copy()) }
    }

    /// Copies it to this disk: Parquet is read from its end, and a connection may break.
    fn copy(&self) -> io::Result<LocalCopy> {
        let (copy, mut file) = LocalCopy::new()?;
        runtime()?.block_on(async {
            let mut chunks = self.store.get(&self.key).await.map_err(cause)?.into_stream();
            while let Some(chunk) = chunks.next().await {
                file.write_all(&chunk.map_err(cause)?)?;
            }
            file.flush()
        })?;
        Ok(copy)
    }
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// What a store says, in a line.
fn cause(error: object_store::Error) -> io::Error {
    let kind = match &error {
        object_store::Error::NotFound { .. } => io::ErrorKind::NotFound,
        object_store::Error::PermissionDenied { .. }
        | object_store::Error::Unauthenticated { .. } => io::ErrorKind::PermissionDenied,
        _ => io::ErrorKind::Other,
    };
    let text = error.to_string();
    io::Error::new(kind, text.lines().next().unwrap_or_default().to_owned())
}
