//! What only a socket shows: clients that are slow, that leave, and that send without an end.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::support::{FakeDesk, until};
use plimsoll_web::{Charts, Config, Limits, serve};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::advance;

/// While it is kept, a paused clock goes on only when it is told to: Tokio holds it while a call blocks.
fn still() -> std::sync::mpsc::Sender<()> {
    let (kept, dropped) = std::sync::mpsc::channel();
    tokio::task::spawn_blocking(move || dropped.recv());
    kept
}

struct Server {
    desk: Arc<FakeDesk>,
    address: SocketAddr,
    close: oneshot::Sender<()>,
    served: JoinHandle<std::io::Result<()>>,
}

async fn server(limits: Limits) -> Server {
    let desk = Arc::new(FakeDesk::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let config = Config::new(address, None, Charts::default()).unwrap().with_limits(limits.clone());
    let shared: Arc<FakeDesk> = Arc::clone(&desk);
    let app = plimsoll_web::app(shared, config);
    let (close, closed) = oneshot::channel::<()>();
    let served =
        tokio::spawn(
            async move { serve(listener, app, &limits, async { drop(closed.await) }).await },
        );
    Server { desk, address, close, served }
}

impl Server {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    fn head(&self, method: &str, path: &str, more: &str) -> String {
        format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n{more}\r\n", self.address)
    }

    fn question(&self, path: &str, body: &serde_json::Value) -> String {
        let body = body.to_string();
        let more = format!(
            "content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n",
            body.len()
        );
        self.head("POST", path, &more) + &body
    }

    async fn ask(&self, path: &str, body: &serde_json::Value) -> String {
        let mut stream = self.connect().await;
        stream.write_all(self.question(path, body).as_bytes()).await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        reply
    }
}

/// What is read until the other side closes, in a time that no test should need.
async fn rest(stream: &mut TcpStream) -> String {
    let mut reply = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut reply));
    // A connection that is cut off counts as closed.
    let _ = read.await.expect("the connection stayed open");
    String::from_utf8_lossy(&reply).into_owned()
}

/// The ending of a log that no other test, and no other run of this one, sends.
fn ending(test: char) -> String {
    format!(".{test}{:x}", std::process::id())
}

fn left_behind(ending: &str) -> usize {
    let files = std::fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    files.filter(|file| file.file_name().to_string_lossy().ends_with(ending)).count()
}

#[tokio::test]
async fn an_upload_beyond_the_limit_is_refused_and_leaves_no_file() {
    let server = server(Limits { upload_bytes: 100_000, ..Limits::default() }).await;
    // It says its length: nothing of it is read.
    let ending = ending('y');
    let path = &format!("/api/v1/profile?name=log{ending}");
    let mut stream = server.connect().await;
    let head = server.head("POST", path, "content-length: 100001\r\nconnection: close\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let reply = rest(&mut stream).await;
    assert!(reply.starts_with("HTTP/1.1 413"), "{reply}");
    // It does not say it: as much is read as we take.
    let mut stream = server.connect().await;
    let head = server.head("POST", path, "transfer-encoding: chunked\r\nconnection: close\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = format!("2710\r\n{}\r\n", "x".repeat(10_000));
    for _ in 0..10 {
        stream.write_all(chunk.as_bytes()).await.unwrap();
    }
    until("written", async || left_behind(&ending) == 1).await;
    stream.write_all(chunk.as_bytes()).await.unwrap();
    let reply = rest(&mut stream).await;
    assert!(reply.starts_with("HTTP/1.1 413"), "{reply}");
    assert!(reply.contains("larger than 100000 bytes"), "{reply}");
    until("deleted", async || left_behind(&ending) == 0).await;
    assert!(server.desk.log.lock().unwrap().is_none());
}

#[tokio::test]
async fn an_upload_that_breaks_off_leaves_no_file() {
    let server = server(Limits::default()).await;
    let mut stream = server.connect().await;
    let ending = ending('z');
    let path = format!("/api/v1/profile?name=log{ending}");
    let head = server.head("POST", &path, "content-length: 1000\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(b"some of it").await.unwrap();
    until("there", async || left_behind(&ending) == 1).await;
    drop(stream);
    until("deleted", async || left_behind(&ending) == 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_question_that_does_not_arrive_is_not_waited_for() {
    let _still = still();
    let limits = Limits { bodies: 1, ..Limits::default() };
    let server = server(limits.clone()).await;
    let mut stream = server.connect().await;
    let more = "content-type: application/json\r\ncontent-length: 50\r\nconnection: close\r\n";
    stream.write_all(server.head("POST", "/api/v1/check", more).as_bytes()).await.unwrap();
    stream.write_all(b"{\"text\":").await.unwrap();
    until("being read", async || {
        server.ask("/api/v1/check", &json!({ "text": "" })).await.starts_with("HTTP/1.1 429")
    })
    .await;
    advance(limits.body_time + Duration::from_millis(1)).await;
    let reply = rest(&mut stream).await;
    assert!(reply.starts_with("HTTP/1.1 408"), "{reply}");
    assert!(reply.contains("did not arrive within 10 s"), "{reply}");
}

#[tokio::test]
async fn only_so_many_questions_are_read_at_once() {
    let server = server(Limits { bodies: 1, ..Limits::default() }).await;
    let mut slow = server.connect().await;
    let more = "content-type: application/json\r\ncontent-length: 50\r\n";
    slow.write_all(server.head("POST", "/api/v1/check", more).as_bytes()).await.unwrap();
    let question = json!({ "text": "" });
    until("full", async || {
        server.ask("/api/v1/check", &question).await.starts_with("HTTP/1.1 429")
    })
    .await;
    drop(slow);
    until("free", async || {
        server.ask("/api/v1/check", &question).await.starts_with("HTTP/1.1 200")
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_on_which_next_to_nothing_moves_is_closed() {
    let _still = still();
    let limits = Limits { connections: 1, ..Limits::default() };
    let server = server(limits.clone()).await;
    // One byte at a time is next to nothing.
    let mut slow = server.connect().await;
    slow.write_all(b"GET / HTTP/1.1\r\nx: ").await.unwrap();
    until("closed", async || {
        advance(limits.idle_time / 10).await;
        // By an end or by a reset; what matters is that it comes.
        let written = slow.write_all(b"y").await;
        let read = slow.try_read(&mut [0]);
        let waits = |e: &std::io::Error| e.kind() == std::io::ErrorKind::WouldBlock;
        written.is_err() || !read.is_err_and(|e| waits(&e))
    })
    .await;
    // There is one place, and it is free again.
    let reply = server.ask("/api/v1/check", &json!({ "text": "" })).await;
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
}

#[tokio::test]
async fn a_client_that_hangs_up_stops_its_work() {
    let server = server(Limits::default()).await;
    let mut stream = server.connect().await;
    let question = server.question("/api/v1/what-if", &json!({ "text": "slow" }));
    stream.write_all(question.as_bytes()).await.unwrap();
    server.desk.at_work(1).await;
    drop(stream);
    server.desk.stopped().await;
}

#[tokio::test]
async fn at_the_end_answers_are_finished_and_jobs_are_stopped() {
    let server = server(Limits::default()).await;
    let job = server.ask("/api/v1/jobs", &json!({ "study": "plan", "text": "slow" })).await;
    assert!(job.starts_with("HTTP/1.1 202"), "{job}");
    server.desk.at_work(1).await;
    let mut stream = server.connect().await;
    let question = server.question("/api/v1/what-if", &json!({ "text": "deaf" }));
    stream.write_all(question.as_bytes()).await.unwrap();
    server.desk.at_work(2).await;
    server.close.send(()).unwrap();
    until("closed", async || TcpStream::connect(server.address).await.is_err()).await;
    server.desk.release();
    let reply = rest(&mut stream).await;
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
    server.served.await.unwrap().unwrap();
    server.desk.stopped().await;
}
