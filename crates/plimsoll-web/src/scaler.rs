//! KEDA's external scaler, protocol `externalscaler.ExternalScaler` (KEDA 2.21).
//!
//! The metric is the number of replicas that is advised and its target is one, so that KEDA's `ceil(value / target)` is that number. A pool that is not known, or of which nothing was seen, is an
//! error: KEDA then falls back on what its ScaledObject says, and scales nothing to zero.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use futures::stream::{self, BoxStream, StreamExt as _};
use plimsoll_study::Advice;
use tonic::server::Grpc;
use tonic::{Code, Status};
use tonic_prost::ProstCodec;
use tower::service_fn;

use crate::board::Board;

/// Where a gRPC client asks.
pub(crate) const PATH: &str = "/externalscaler.ExternalScaler/{method}";

/// The metric of a pool is called this, and its name.
const METRIC: &str = "plimsoll-desired-replicas";

/// Who asks: a ScaledObject.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ScaledObjectRef {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Where it is.
    #[prost(string, tag = "2")]
    pub namespace: String,
    /// What its trigger says: `pool`, where that is not its name.
    #[prost(btree_map = "string, string", tag = "3")]
    pub scaler_metadata: BTreeMap<String, String>,
}

/// Whether there should be any replica.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct IsActiveResponse {
    /// Whether.
    #[prost(bool, tag = "1")]
    pub result: bool,
}

/// What is measured.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GetMetricSpecResponse {
    /// Each metric.
    #[prost(message, repeated, tag = "1")]
    pub metric_specs: Vec<MetricSpec>,
}

/// A metric and its target.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MetricSpec {
    /// Its name.
    #[prost(string, tag = "1")]
    pub metric_name: String,
    /// The target, as older versions read it.
    #[prost(int64, tag = "2")]
    pub target_size: i64,
    /// The target.
    #[prost(double, tag = "3")]
    pub target_size_float: f64,
}

/// Asks for a value.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GetMetricsRequest {
    /// Who asks.
    #[prost(message, optional, tag = "1")]
    pub scaled_object_ref: Option<ScaledObjectRef>,
    /// What for.
    #[prost(string, tag = "2")]
    pub metric_name: String,
}

/// Values.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GetMetricsResponse {
    /// Each.
    #[prost(message, repeated, tag = "1")]
    pub metric_values: Vec<MetricValue>,
}

/// A value.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MetricValue {
    /// The metric.
    #[prost(string, tag = "1")]
    pub metric_name: String,
    /// Its value, as older versions read it.
    #[prost(int64, tag = "2")]
    pub metric_value: i64,
    /// Its value.
    #[prost(double, tag = "3")]
    pub metric_value_float: f64,
}

pub(crate) async fn answer(
    State(board): State<Board>,
    Path(method): Path<String>,
    request: Request,
) -> Response {
    match method.as_str() {
        "IsActive" => {
            let service = service_fn(move |asked: tonic::Request<ScaledObjectRef>| {
                let result = desired(board.latest().as_ref(), asked.get_ref());
                let result = result.map(|(_, replicas)| IsActiveResponse { result: replicas > 0 });
                std::future::ready(result.map(tonic::Response::new))
            });
            sent(Grpc::new(ProstCodec::default()).unary(service, request).await)
        }
        "GetMetricSpec" => {
            let service = service_fn(move |asked: tonic::Request<ScaledObjectRef>| {
                let spec = spec(board.latest().as_ref(), asked.get_ref());
                std::future::ready(spec.map(tonic::Response::new))
            });
            sent(Grpc::new(ProstCodec::default()).unary(service, request).await)
        }
        "GetMetrics" => {
            let service = service_fn(move |asked: tonic::Request<GetMetricsRequest>| {
                let values = values(board.latest().as_ref(), asked.get_ref());
                std::future::ready(values.map(tonic::Response::new))
            });
            sent(Grpc::new(ProstCodec::default()).unary(service, request).await)
        }
        "StreamIsActive" => {
            let service = service_fn(move |asked: tonic::Request<ScaledObjectRef>| {
                std::future::ready(Ok(tonic::Response::new(stream(&board, asked.into_inner()))))
            });
            sent(Grpc::new(ProstCodec::default()).server_streaming(service, request).await)
        }
        other => {
            let said = format!("`{other}` is not a method of KEDA's external scaler");
            sent(Status::new(Code::Unimplemented, said).into_http::<tonic::body::Body>())
        }
    }
}

fn sent(answer: axum::http::Response<tonic::body::Body>) -> Response {
    answer.map(Body::new).into_response()
}

/// The pool that is asked about, and how many replicas are advised for it.
fn desired(advice: Option<&Advice>, asked: &ScaledObjectRef) -> Result<(String, u32), Status> {
    let unseen = || Status::unavailable("nothing was seen of the fleet yet, so nothing is advised");
    let advice = advice.ok_or_else(unseen)?;
    let name = asked.scaler_metadata.get("pool").unwrap_or(&asked.name);
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

fn spec(advice: Option<&Advice>, asked: &ScaledObjectRef) -> Result<GetMetricSpecResponse, Status> {
    let (pool, _) = desired(advice, asked)?;
    let metric_name = metric_name(&pool);
    let spec = MetricSpec { metric_name, target_size: 1, target_size_float: 1.0 };
    Ok(GetMetricSpecResponse { metric_specs: vec![spec] })
}

fn values(
    advice: Option<&Advice>,
    asked: &GetMetricsRequest,
) -> Result<GetMetricsResponse, Status> {
    let who = asked.scaled_object_ref.clone().unwrap_or_default();
    let (pool, replicas) = desired(advice, &who)?;
    let value = MetricValue {
        // KEDA looks for the name that it asked for.
        metric_name: match asked.metric_name.as_str() {
            "" => metric_name(&pool),
            name => name.to_owned(),
        },
        metric_value: i64::from(replicas),
        metric_value_float: f64::from(replicas),
    };
    Ok(GetMetricsResponse { metric_values: vec![value] })
}

/// Says at once whether there should be any replica, and again whenever that changes.
fn stream(
    board: &Board,
    asked: ScaledObjectRef,
) -> BoxStream<'static, Result<IsActiveResponse, Status>> {
    let begun = (board.listen(), asked, None);
    stream::unfold(begun, |(mut posted, asked, said)| async move {
        loop {
            let now = desired(posted.borrow_and_update().as_ref(), &asked).ok();
            let now = now.map(|(_, replicas)| replicas > 0);
            if let Some(result) = now.filter(|now| said != Some(*now)) {
                return Some((Ok(IsActiveResponse { result }), (posted, asked, Some(result))));
            }
            posted.changed().await.ok()?;
        }
    })
    .boxed()
}
