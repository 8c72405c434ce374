//! Logs by URL: from a folder, and from a web server.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::num::NonZero;
use std::path::PathBuf;

use plimsoll_ledger::{IngestError, IngestInput, Ingested, ingest};
use tempfile::TempDir;

const LOG: &str =
    "arrived_at,num_prefill_tokens,num_decode_tokens\n0.5,900,60\n2.5,40,5\n3.0,1200,12\n";

fn read(urls: &[String], folder: &TempDir) -> Result<Ingested, IngestError> {
    ingest(&IngestInput {
        files: urls.iter().map(PathBuf::from).collect(),
        ledger: folder.path().join("ledger"),
        source: None,
        format: None,
        map: Vec::new(),
        start_ns: 0,
        find: Some(plimsoll_query::find),
        threads: NonZero::<usize>::MIN,
    })
}

#[test]
fn files_folders_and_patterns() {
    let (from, into) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let logs = from.path().join("logs");
    std::fs::create_dir_all(logs.join("deeper")).unwrap();
    std::fs::write(logs.join("a.csv"), LOG).unwrap();
    std::fs::write(logs.join("deeper/b.csv"), LOG.replace("900", "901")).unwrap();
    std::fs::write(logs.join("notes.txt"), "nothing that is known\n").unwrap();
    let url = format!("file://{}", logs.display());

    let done = read(&[format!("{url}/a.csv")], &into).unwrap();
    assert_eq!((done.rows_added, done.files[0].file.clone()), (3, format!("{url}/a.csv")));
    let done = read(&[format!("{url}/*.csv")], &into).unwrap();
    let names: Vec<&str> = done.files.iter().map(|file| file.file.as_str()).collect();
    assert_eq!(names, [format!("{url}/a.csv"), format!("{url}/deeper/b.csv")]);
    // Requests without names are told apart by their lines, not by their files.
    assert_eq!((done.rows_added, done.duplicates), (1, 5));
    let done = read(&[format!("{url}/")], &into).unwrap();
    assert_eq!((done.rows_added, done.duplicates), (0, 6));
    assert!(done.warnings.iter().any(|warning| warning.contains("notes.txt: passed over")));

    let gone = read(&[format!("{url}/gone.csv")], &into).unwrap_err();
    assert_eq!(gone.to_string(), format!("{url}/gone.csv: cannot be read"));
    let none = read(&[format!("{url}/*.zst")], &into).unwrap_err();
    assert_eq!(none.to_string(), format!("{url}/*.zst: cannot be read"));
}

#[test]
fn a_web_server() {
    let into = TempDir::new().unwrap();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/logs/a.csv", server.local_addr().unwrap());
    let serves = std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = server.accept().unwrap();
            let mut asked = [0; 4096];
            let n = stream.read(&mut asked).unwrap();
            let asked = String::from_utf8_lossy(&asked[..n]).into_owned();
            let found = asked.starts_with("GET /logs/a.csv ");
            let (status, body) = if found { ("200 OK", LOG) } else { ("404 Not Found", "") };
            write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nLast-Modified: Sun, 15 Nov 2026 09:00:00 GMT\r\n\
                 Connection: close\r\n\r\n{body}",
                body.len()
            )
            .unwrap();
        }
    });
    let done = read(std::slice::from_ref(&url), &into).unwrap();
    assert_eq!((done.rows_added, done.files[0].file.as_str()), (3, url.as_str()));
    let gone = read(&[format!("{url}.gone")], &into).unwrap_err();
    assert_eq!(gone.to_string(), format!("{url}.gone: cannot be read"));
    assert!(gone.help().is_none());
    serves.join().unwrap();
}
