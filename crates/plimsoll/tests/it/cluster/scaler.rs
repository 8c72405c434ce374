//! A client of KEDA's external scaler. Its messages are written here again, from KEDA's own protocol, so that a mistake in ours shows.

use std::collections::BTreeMap;

use tonic::client::Grpc;
use tonic::transport::{Channel, Uri};
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

#[derive(Clone, PartialEq, prost::Message)]
struct Ref {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    namespace: String,
    #[prost(btree_map = "string, string", tag = "3")]
    metadata: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Active {
    #[prost(bool, tag = "1")]
    result: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Asks {
    #[prost(message, optional, tag = "1")]
    of: Option<Ref>,
    #[prost(string, tag = "2")]
    metric: String,
}

/// `MetricSpec` and `MetricValue` are alike: a name, a whole number that is deprecated, and a real one.
#[derive(Clone, PartialEq, prost::Message)]
struct Number {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(int64, tag = "2")]
    whole: i64,
    #[prost(double, tag = "3")]
    real: f64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Numbers {
    #[prost(message, repeated, tag = "1")]
    all: Vec<Number>,
}

pub struct Scaler {
    runtime: tokio::runtime::Runtime,
    channel: Channel,
}

fn of(pool: &str) -> Ref {
    Ref {
        name: "some-scaled-object".to_owned(),
        namespace: "serving".to_owned(),
        metadata: [("pool".to_owned(), pool.to_owned())].into(),
    }
}

fn uri(method: &str) -> Uri {
    format!("/externalscaler.ExternalScaler/{method}").parse().expect("a path")
}

impl Scaler {
    pub fn new(address: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let endpoint = Channel::from_shared(address.to_owned()).expect("an address");
        let channel = runtime.block_on(endpoint.connect()).expect("HTTP/2 on the same port");
        Self { runtime, channel }
    }

    fn ask<A, B>(&self, method: &str, asked: A) -> Result<B, Status>
    where
        A: prost::Message + Send + Sync + 'static,
        B: prost::Message + Default + Send + Sync + 'static,
    {
        self.runtime.block_on(async {
            let mut client = Grpc::new(self.channel.clone());
            client.ready().await.expect("ready");
            let codec = ProstCodec::<A, B>::default();
            let path = uri(method).into_parts().path_and_query.expect("a path");
            client.unary(Request::new(asked), path, codec).await.map(|own| own.into_inner())
        })
    }

    /// KEDA's own sequence: is it active, what is measured, what is it now; `ceil(value / target)` are the replicas.
    pub fn check(&self, pool: &str, replicas: u64) {
        let active: Active = self.ask("IsActive", of(pool)).expect("answers");
        assert!(active.result);
        let spec: Numbers = self.ask("GetMetricSpec", of(pool)).expect("answers");
        let [spec] = spec.all.as_slice() else { panic!("{spec:?}") };
        assert_eq!((spec.whole, spec.real), (1, 1.0));
        let asks = Asks { of: Some(of(pool)), metric: spec.name.clone() };
        let values: Numbers = self.ask("GetMetrics", asks).expect("answers");
        let [value] = values.all.as_slice() else { panic!("{values:?}") };
        assert_eq!(value.name, spec.name);
        assert_eq!((value.real / spec.real).ceil() as u64, replicas);
        assert_eq!(u64::try_from(value.whole), Ok(replicas));
        // What streams says so at once.
        let streamed = self.runtime.block_on(async {
            let mut client = Grpc::new(self.channel.clone());
            client.ready().await.expect("ready");
            let path = uri("StreamIsActive").into_parts().path_and_query.expect("a path");
            let codec = ProstCodec::<Ref, Active>::default();
            let stream = client.server_streaming(Request::new(of(pool)), path, codec).await;
            stream.expect("streams").into_inner().message().await
        });
        assert_eq!(streamed.expect("a message"), Some(Active { result: true }));
    }

    /// A pool that is not in the plan is an error, on which KEDA falls back, and no zero.
    pub fn refuses(&self, pool: &str) {
        let refused = self.ask::<Ref, Active>("IsActive", of(pool)).expect_err("no such pool");
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert!(refused.message().contains("one of chat"), "{}", refused.message());
        let other = self.ask::<Ref, Active>("Scale", of(pool)).expect_err("no such method");
        assert_eq!(other.code(), Code::Unimplemented);
    }
}
