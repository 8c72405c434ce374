//! KEDA's external scaler, protocol `externalscaler.ExternalScaler` (KEDA 2.21).
//!
//! The metric is the number of replicas that is advised and its target is one, so that KEDA's `ceil(value / target)` is that number. A pool that is not known, or of which nothing was seen, is an
//! error: KEDA then falls back on what its ScaledObject says, and scales nothing to zero.

use axum::extract::{Path, Request, State};
use axum::response::Response;
use plimsoll_study::Advice;

use crate::board::Board;
use crate::grpc::{self, Message, Status, fields};

/// Where a gRPC client asks.
pub(crate) const PATH: &str = "/externalscaler.ExternalScaler/{method}";

/// The metric of a pool is called this, and its name.
const METRIC: &str = "plimsoll-desired-replicas";

/// Who asks: a ScaledObject.
#[derive(Default)]
struct ScaledObjectRef {
    name: String,
    /// What its trigger says, where that is not its name.
    pool: Option<String>,
}

impl ScaledObjectRef {
    fn read(message: &[u8]) -> Result<Self, Status> {
        let mut who = Self::default();
        for (tag, field) in fields(message)? {
            match tag {
                1 => who.name = text(field)?,
                // An entry of the trigger's metadata: its key, then its value.
                3 => {
                    let entry = fields(field)?;
                    if entry.contains(&(1, b"pool")) {
                        let value = entry.iter().find(|(tag, _)| *tag == 2);
                        who.pool = Some(value.map_or(Ok(String::new()), |(_, v)| text(v))?);
                    }
                }
                _ => {}
            }
        }
        Ok(who)
    }
}

fn text(field: &[u8]) -> Result<String, Status> {
    let text = String::from_utf8(field.to_vec());
    text.map_err(|_| Status::invalid_argument("a text is not UTF-8"))
}

pub(crate) async fn answer(
    State(board): State<Board>,
    Path(method): Path<String>,
    request: Request,
) -> Result<Response, Status> {
    let known = ["IsActive", "StreamIsActive", "GetMetricSpec", "GetMetrics"];
    if !known.contains(&method.as_str()) {
        let message = format!("`{method}` is not a method of KEDA's external scaler");
        return Err(Status::unimplemented(message));
    }
    let message = grpc::receive(request.into_body()).await?;
    let advice = board.latest();
    let message = match method.as_str() {
        "StreamIsActive" => return Ok(stream(&board, ScaledObjectRef::read(&message)?)),
        "GetMetricSpec" => spec(advice.as_ref(), &ScaledObjectRef::read(&message)?)?,
        "GetMetrics" => values(advice.as_ref(), &message)?,
        _ => {
            let (_, replicas) = desired(advice.as_ref(), &ScaledObjectRef::read(&message)?)?;
            is_active(replicas > 0)
        }
    };
    let (sender, response) = grpc::stream();
    sender.send(&message).await;
    sender.end().await;
    Ok(response)
}

/// `IsActiveResponse`.
fn is_active(result: bool) -> Message {
    Message::default().whole(1, u64::from(result))
}

/// `MetricSpec` and `MetricValue` are alike: a name, a number as older versions read it, and the number.
fn metric(name: &str, number: u32) -> Message {
    let metric = Message::default().bytes(1, name.as_bytes()).whole(2, u64::from(number));
    // Each is the only one in its answer.
    Message::default().message(1, &metric.real(3, f64::from(number)))
}

/// The pool that is asked about, and how many replicas are advised for it.
fn desired(advice: Option<&Advice>, who: &ScaledObjectRef) -> Result<(String, u32), Status> {
    let unseen = || Status::unavailable("nothing was seen of the fleet yet, so nothing is advised");
    let advice = advice.ok_or_else(unseen)?;
    let name = who.pool.as_ref().unwrap_or(&who.name);
    let Some(pool) = advice.pools.iter().find(|pool| pool.pool == *name) else {
        let pools: Vec<&str> = advice.pools.iter().map(|pool| pool.pool.as_str()).collect();
        return Err(Status::invalid_argument(format!(
            "no pool is called `{name}`; set `pool` in the trigger's metadata to one of {}",
            pools.join(", ")
        )));
    };
    Ok((pool.pool.clone(), pool.desired_replicas.ok_or_else(unseen)?))
}

fn metric_name(pool: &str) -> String {
    format!("{METRIC}-{pool}")
}

/// `GetMetricSpecResponse`.
fn spec(advice: Option<&Advice>, who: &ScaledObjectRef) -> Result<Message, Status> {
    let (pool, _) = desired(advice, who)?;
    Ok(metric(&metric_name(&pool), 1))
}

/// `GetMetricsResponse`.
fn values(advice: Option<&Advice>, request: &[u8]) -> Result<Message, Status> {
    let (mut who, mut name) = (ScaledObjectRef::default(), String::new());
    for (tag, field) in fields(request)? {
        match tag {
            1 => who = ScaledObjectRef::read(field)?,
            // KEDA looks for the name that it asked for.
            2 => name = text(field)?,
            _ => {}
        }
    }
    let (pool, replicas) = desired(advice, &who)?;
    if name.is_empty() {
        name = metric_name(&pool);
    }
    Ok(metric(&name, replicas))
}

/// Says at once whether there should be any replica, and again whenever that changes.
fn stream(board: &Board, who: ScaledObjectRef) -> Response {
    let mut posted = board.listen();
    let (sender, response) = grpc::stream();
    tokio::spawn(async move {
        let mut last = None;
        loop {
            let now = desired(posted.borrow_and_update().as_ref(), &who).ok();
            let now = now.map(|(_, replicas)| replicas > 0);
            if let Some(result) = now.filter(|now| last != Some(*now)) {
                sender.send(&is_active(result)).await;
                last = now;
            }
            tokio::select! {
                changed = posted.changed() => if changed.is_err() { return sender.end().await },
                () = sender.closed() => return,
            }
        }
    });
    response
}
