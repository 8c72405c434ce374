//! What only a socket shows: clients that are slow, that leave, and that send without an end.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use plimsoll_web::{Charts, Config, Limits, serve};
use serde_json::json;
use support::{FakeDesk, until};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

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
    let read = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut reply));
    // A connection that is cut off counts as closed.
    let _ = read.await.expect("the connection stayed open");
    String::from_utf8_lossy(&reply).into_owned()
}

fn left_behind(ending: &str) -> usize {
    let files = std::fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    files.filter(|file| file.file_name().to_string_lossy().ends_with(ending)).count()
}

#[tokio::test]
async fn an_upload_beyond_the_limit_is_refused_and_leaves_no_file() {
    let server = server(Limits { upload_bytes: 100_000, ..Limits::default() }).await;
    // It says its length: nothing of it is read.
    let path = "/api/v1/profile?name=log.zq81x";
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
    until("written", async || left_behind(".zq81x") == 1).await;
    stream.write_all(chunk.as_bytes()).await.unwrap();
    let reply = rest(&mut stream).await;
    assert!(reply.starts_with("HTTP/1.1 413"), "{reply}");
    assert!(reply.contains("larger than 100000 bytes"), "{reply}");
    until("deleted", async || left_behind(".zq81x") == 0).await;
    assert!(server.desk.log.lock().unwrap().is_none());
}

#[tokio::test]
async fn an_upload_that_breaks_off_leaves_no_file() {
    let server = server(Limits::default()).await;
    let mut stream = server.connect().await;
    let head = server.head("POST", "/api/v1/profile?name=log.zq82x", "content-length: 1000\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(b"some of it").await.unwrap();
    until("there", async || left_behind(".zq82x") == 1).await;
    drop(stream);
    until("deleted", async || left_behind(".zq82x") == 0).await;
}

#[tokio::test]
async fn a_question_that_does_not_arrive_is_not_waited_for() {
    let server = server(Limits { body_time: Duration::from_millis(50), ..Limits::default() }).await;
    let mut stream = server.connect().await;
    let more = "content-type: application/json\r\ncontent-length: 50\r\nconnection: close\r\n";
    stream.write_all(server.head("POST", "/api/v1/check", more).as_bytes()).await.unwrap();
    stream.write_all(b"{\"text\":").await.unwrap();
    let reply = rest(&mut stream).await;
    assert!(reply.starts_with("HTTP/1.1 408"), "{reply}");
    assert!(reply.contains("did not arrive within 0.05 s"), "{reply}");
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

#[tokio::test]
async fn a_connection_on_which_next_to_nothing_moves_is_closed() {
    let limits =
        Limits { idle_time: Duration::from_millis(200), connections: 1, ..Limits::default() };
    let server = server(limits).await;
    // One byte at a time is next to nothing.
    let mut slow = server.connect().await;
    let dripped = tokio::time::timeout(Duration::from_secs(10), async {
        slow.write_all(b"GET / HTTP/1.1\r\nx: ").await?;
        loop {
            slow.write_all(b"y").await?;
            tokio::time::sleep(Duration::from_millis(20)).await;
            let mut byte = [0];
            match slow.try_read(&mut byte) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(e) => return Err(e),
            }
        }
    });
    // Closed, by an end or by a reset; what matters is that it came.
    let _: std::io::Result<()> = dripped.await.expect("it was never closed");
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
    until("at work", async || server.desk.at_work.load(Ordering::SeqCst) == 1).await;
    drop(stream);
    until("stopped", async || server.desk.stopped.load(Ordering::SeqCst)).await;
}

#[tokio::test]
async fn at_the_end_answers_are_finished_and_jobs_are_stopped() {
    let server = server(Limits::default()).await;
    let job = server.ask("/api/v1/jobs", &json!({ "study": "plan", "text": "slow" })).await;
    assert!(job.starts_with("HTTP/1.1 202"), "{job}");
    until("at work", async || server.desk.at_work.load(Ordering::SeqCst) == 1).await;
    let mut stream = server.connect().await;
    let question = server.question("/api/v1/what-if", &json!({ "text": "deaf" }));
    stream.write_all(question.as_bytes()).await.unwrap();
    until("two at work", async || server.desk.at_work.load(Ordering::SeqCst) == 2).await;
    server.close.send(()).unwrap();
    let reply = rest(&mut stream).await;
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
    server.served.await.unwrap().unwrap();
    until("stopped", async || server.desk.stopped.load(Ordering::SeqCst)).await;
}
