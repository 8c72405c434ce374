//! Logs that are not on this disk: objects of a store, by URL.

use std::path::{Path, PathBuf};

use crate::error::IngestError;
use crate::unpack::{self, Content};

/// A log, wherever it is.
pub(crate) enum LogFile {
    /// On this disk, or standard input.
    Local {
        path: PathBuf,
        /// Whether it was found in a directory, and not named.
        searched: bool,
    },
    /// In an object store.
    #[cfg(feature = "object-store")]
    Remote(store::Object),
}

impl LogFile {
    /// How large it is, where that is known before it is read.
    pub(crate) fn bytes(&self) -> Option<u64> {
        match self {
            Self::Local { path, .. } => Some(path.metadata().ok()?.len()),
            #[cfg(feature = "object-store")]
            Self::Remote(_) => None,
        }
    }

    pub(crate) fn name(&self) -> String {
        match self {
            Self::Local { path, .. } => path.display().to_string(),
            #[cfg(feature = "object-store")]
            Self::Remote(object) => object.name.clone(),
        }
    }

    /// Whether nobody named it: then it may be something else than a log.
    pub(crate) fn searched(&self) -> bool {
        match self {
            Self::Local { searched, .. } => *searched,
            #[cfg(feature = "object-store")]
            Self::Remote(object) => object.searched,
        }
    }

    /// Hands on what is in it, once or for each member of an archive.
    pub(crate) fn open(
        &self,
        each: &mut dyn FnMut(&str, Content<'_>) -> Result<(), IngestError>,
    ) -> Result<(), IngestError> {
        match self {
            Self::Local { path, .. } => unpack::open(path, each),
            #[cfg(feature = "object-store")]
            Self::Remote(object) => object.open(each),
        }
    }
}

/// The argument as a URL, where it is one of a store that could be known.
pub(crate) fn url_of(argument: &Path) -> Option<&str> {
    let text = argument.to_str()?;
    let (scheme, _) = text.split_once("://")?;
    ["s3", "gs", "az", "http", "https", "file"].contains(&scheme).then_some(text)
}

/// The objects that a URL names.
#[cfg(feature = "object-store")]
pub(crate) fn find(url: &str) -> Result<Vec<LogFile>, IngestError> {
    Ok(store::find(url)?.into_iter().map(LogFile::Remote).collect())
}

/// The objects that a URL names, where the program was built for it.
#[cfg(not(feature = "object-store"))]
pub(crate) fn find(url: &str) -> Result<Vec<LogFile>, IngestError> {
    Err(IngestError::NotBuilt { name: url.to_owned() })
}

#[cfg(feature = "object-store")]
mod store {
    use std::fs::File;
    use std::io::{self, Write as _};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use futures::{StreamExt as _, TryStreamExt as _};
    use object_store::path::Path as Key;
    use object_store::{ObjectStore, ObjectStoreExt as _, parse_url_opts};
    use url::Url;
    use wildmatch::WildMatch;

    use super::{Content, IngestError, PathBuf, unpack};

    /// An object of a store.
    pub(crate) struct Object {
        /// Its URL.
        pub(crate) name: String,
        pub(crate) searched: bool,
        store: Arc<dyn ObjectStore>,
        key: Key,
    }

    /// A copy on this disk, gone with this.
    struct Copy(PathBuf);

    impl Drop for Copy {
        fn drop(&mut self) {
            // Whatever cannot be removed is in the system's own place for such things.
            let _ = std::fs::remove_file(&self.0);
        }
    }

    /// An object; those below a name that ends with `/`; or those that a pattern with `*` matches.
    pub(crate) fn find(url: &str) -> Result<Vec<Object>, IngestError> {
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
            let name = url.to_owned();
            return Ok(vec![Object { name, searched: false, store, key }]);
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
        let object = |key: Key| Object {
            name: format!("{root}/{key}"),
            searched: true,
            store: Arc::clone(&store),
            key,
        };
        Ok(keys.into_iter().map(object).collect())
    }

    impl Object {
        /// Copies it to this disk and opens it there: Parquet is read from its end, and a connection may break.
        pub(super) fn open(
            &self,
            each: &mut dyn FnMut(&str, Content<'_>) -> Result<(), IngestError>,
        ) -> Result<(), IngestError> {
            let copy = self.copy().map_err(|source| IngestError::Unreadable {
                name: self.name.clone(),
                line: 0,
                source,
            })?;
            unpack::open_as(&copy.0, &self.name, each)
        }

        fn copy(&self) -> io::Result<Copy> {
            static NUMBER: AtomicU64 = AtomicU64::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("plimsoll-{}-{number}.object", std::process::id());
            let path = std::env::temp_dir().join(name);
            let mut file = File::create(&path)?;
            let copy = Copy(path);
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
}
