//! The socket: so many connections, and none that only sits there.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};

use crate::Limits;

/// What must arrive within the idle time to count as something. A request that is shorter has been answered by then; one that drips in slower only wants the connection.
const LITTLE: usize = 16 << 10;

/// Answers until `shutdown`; then lets those finish who are being answered, for as long as a what-if takes, and stops all jobs.
pub async fn serve(
    listener: TcpListener,
    app: Router,
    limits: &Limits,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let door = Door {
        listener,
        places: Arc::new(Semaphore::new(limits.connections)),
        patience: limits.idle_time,
    };
    let (closing, closed) = tokio::sync::oneshot::channel();
    let served = axum::serve(door, app).with_graceful_shutdown(async {
        shutdown.await;
        // Nobody listens where all were answered already.
        let _ = closing.send(());
    });
    let grace = limits.what_if_time;
    tokio::select! {
        done = async { served.await } => done,
        () = async {
            let _ = closed.await;
            sleep(grace).await;
        } => Ok(()),
    }
}

/// Lets in as many as there are places. Others wait outside, where the operating system keeps a line of its own.
struct Door {
    listener: TcpListener,
    places: Arc<Semaphore>,
    patience: Duration,
}

impl Listener for Door {
    type Io = Visitor;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Visitor, SocketAddr) {
        loop {
            let place = Arc::clone(&self.places).acquire_owned().await.ok();
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    // Answers are small and somebody waits for them. Where it cannot be set, they are merely later.
                    let _ = stream.set_nodelay(true);
                    return (Visitor::new(stream, self.patience, place), address);
                }
                // Such as no free file: it passes when somebody leaves.
                Err(_) => sleep(Duration::from_millis(100)).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that is closed when next to nothing moves on it.
struct Visitor {
    stream: TcpStream,
    patience: Duration,
    until: Pin<Box<Sleep>>,
    arrived: usize,
    _place: Option<OwnedSemaphorePermit>,
}

impl Visitor {
    fn new(stream: TcpStream, patience: Duration, place: Option<OwnedSemaphorePermit>) -> Self {
        Self { stream, patience, until: Box::pin(sleep(patience)), arrived: 0, _place: place }
    }

    fn moved(&mut self) {
        self.arrived = 0;
        let until = Instant::now() + self.patience;
        self.until.as_mut().reset(until);
    }

    /// An error when patience has run out.
    fn patience(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        self.until.as_mut().poll(context).map(|()| io::ErrorKind::TimedOut.into())
    }
}

impl AsyncRead for Visitor {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.arrived += buffer.filled().len() - before;
        if self.arrived >= LITTLE {
            self.moved();
        }
        if let Poll::Ready(impatient) = self.patience(context) {
            return Poll::Ready(Err(impatient));
        }
        read
    }
}

impl AsyncWrite for Visitor {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.stream).poll_write(context, buffer) {
            Poll::Ready(written) => {
                self.moved();
                Poll::Ready(written)
            }
            Poll::Pending => Poll::Ready(Err(ready!(self.patience(context)))),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
