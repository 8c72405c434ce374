//! As much of gRPC and of its messages as an external scaler needs: a call has one message, and is answered by one or by a stream of them.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use http_body::Frame;
use tokio::sync::mpsc;

/// Longer than any message that a scaler is asked with.
const MESSAGE_MAX: usize = 64 << 10;

/// Why a call has no answer: a number of gRPC, and words.
#[derive(Debug)]
pub(crate) struct Status {
    code: u16,
    message: String,
}

impl Status {
    pub(crate) fn invalid_argument(message: impl Into<String>) -> Self {
        Self { code: 3, message: message.into() }
    }

    pub(crate) fn unimplemented(message: impl Into<String>) -> Self {
        Self { code: 12, message: message.into() }
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self { code: 14, message: message.into() }
    }

    fn internal(message: &str) -> Self {
        Self { code: 13, message: message.to_owned() }
    }
}

/// A call that failed has no body: its status is in the head.
impl IntoResponse for Status {
    fn into_response(self) -> Response {
        let plain = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'%';
        let escaped = self.message.bytes().map(|byte| match plain(byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        });
        let status = [("grpc-status", self.code.to_string()), ("grpc-message", escaped.collect())];
        (CONTENT_TYPE, status).into_response()
    }
}

const CONTENT_TYPE: [(header::HeaderName, &str); 1] = [(header::CONTENT_TYPE, "application/grpc")];

/// The message of a call.
pub(crate) async fn receive(body: Body) -> Result<Bytes, Status> {
    let body = to_bytes(body, MESSAGE_MAX).await;
    let body = body.map_err(|_| Status::internal("the message is too long or broke off"))?;
    match body.split_at_checked(5) {
        Some(([0, length @ ..], message)) if length == length_of(message) => {
            Ok(body.slice_ref(message))
        }
        Some(([1, ..], _)) => Err(Status::unimplemented("messages are read as they are only")),
        _ => Err(Status::internal("this is not one message")),
    }
}

/// As it stands before a message.
fn length_of(message: &[u8]) -> [u8; 4] {
    u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes()
}

/// Answers to a call, as they are sent.
pub(crate) struct Sender(mpsc::Sender<Frame<Bytes>>);

impl Sender {
    /// Whoever hung up needs no answer.
    pub(crate) async fn send(&self, message: &Message) {
        let head = [&[0], length_of(&message.0).as_slice(), &message.0].concat();
        let _ = self.0.send(Frame::data(head.into())).await;
    }

    /// All is said.
    pub(crate) async fn end(self) {
        let status = HeaderMap::from_iter([(
            header::HeaderName::from_static("grpc-status"),
            HeaderValue::from_static("0"),
        )]);
        let _ = self.0.send(Frame::trailers(status)).await;
    }

    /// When nobody listens any more.
    pub(crate) async fn closed(&self) {
        self.0.closed().await;
    }
}

/// A stream of answers, which is sent while there are any.
pub(crate) fn stream() -> (Sender, Response) {
    // One message and the end never wait.
    let (sender, frames) = mpsc::channel(2);
    (Sender(sender), (CONTENT_TYPE, Body::new(Frames(frames))).into_response())
}

struct Frames(mpsc::Receiver<Frame<Bytes>>);

impl HttpBody for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|frame| frame.map(Ok))
    }
}

/// A message of Protocol Buffers that is being written. As there, what is zero or empty is left out.
#[derive(Default)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    pub(crate) fn bytes(mut self, tag: u64, bytes: &[u8]) -> Self {
        if !bytes.is_empty() {
            self.varint(tag << 3 | 2);
            self.varint(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
            self.0.extend(bytes);
        }
        self
    }

    pub(crate) fn message(self, tag: u64, message: &Self) -> Self {
        self.bytes(tag, &message.0)
    }

    pub(crate) fn whole(mut self, tag: u64, value: u64) -> Self {
        if value != 0 {
            self.varint(tag << 3);
            self.varint(value);
        }
        self
    }

    pub(crate) fn real(mut self, tag: u64, value: f64) -> Self {
        if value.to_bits() != 0 {
            self.varint(tag << 3 | 1);
            self.0.extend(value.to_le_bytes());
        }
        self
    }

    /// Seven bits a byte, the lowest first; all but the last have the highest bit.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

/// The texts and messages in a message, with their tags; numbers are passed over. None where it breaks off.
pub(crate) fn fields(mut left: &[u8]) -> Result<Vec<(u64, &[u8])>, Status> {
    let mut fields = Vec::new();
    while !left.is_empty() {
        let (tag, field) = next(&mut left).ok_or_else(|| Status::internal("not a message"))?;
        fields.extend(field.map(|field| (tag, field)));
    }
    Ok(fields)
}

fn next<'a>(left: &mut &'a [u8]) -> Option<(u64, Option<&'a [u8]>)> {
    let key = varint(left)?;
    let (length, is_field) = match key & 7 {
        0 => return varint(left).map(|_| (key >> 3, None)),
        1 => (8, false),
        2 => (usize::try_from(varint(left)?).ok()?, true),
        5 => (4, false),
        _ => return None,
    };
    let (field, rest) = left.split_at_checked(length)?;
    *left = rest;
    Some((key >> 3, is_field.then_some(field)))
}

fn varint(left: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = left.split_first()?;
        *left = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
