//! A Ballista cluster on loopback, in this process: one scheduler and some executors, each with its own
//! Flight server and its own folder.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arrow_flight::flight_service_server::FlightServiceServer;
use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::ids::new_instance_id;
use ballista_core::registry::BallistaFunctionRegistry;
use ballista_core::serde::BallistaCodec;
use ballista_core::serde::protobuf::ExecutorRegistration;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_core::serde::scheduler::{
    ExecutorOperatingSystemSpecification, ExecutorSpecification,
};
use ballista_core::utils::{
    GrpcServerConfig, create_grpc_server, default_config_producer, default_session_builder,
};
use ballista_core::{BALLISTA_PROTOCOL_VERSION, JobId};
use ballista_executor::execution_engine::QueryStageExecutor;
use ballista_executor::execution_loop::poll_loop;
use ballista_executor::executor::Executor;
use ballista_executor::flight_service::BallistaFlightService;
use ballista_executor::health::ExecutorHealth;
use ballista_executor::metrics::ExecutorMetricsCollector;
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::{create_scheduler, start_grpc_service_with_listener};
use ballista_scheduler::scheduler_server::SchedulerServer;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::object_store::local::LocalFileSystem;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_stream::wrappers::TcpListenerStream;

type Server = SchedulerServer<LogicalPlanNode, PhysicalPlanNode>;

/// What a node sees of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// The same files under the same paths.
    Shared,
    /// A disk with nothing on it.
    Blind,
}

/// A running cluster. It ends with [`shutdown`](Cluster::shutdown), or when it is dropped.
pub struct Cluster {
    address: SocketAddr,
    tasks: Vec<Arc<AtomicUsize>>,
    folders: Vec<TempDir>,
    /// All of its tasks, so that ending it ends them and frees the ports.
    runtime: Option<Runtime>,
}

impl Cluster {
    /// What a client is given.
    pub fn address(&self) -> String {
        format!("df://{}", self.address)
    }

    /// How many tasks each executor has finished.
    pub fn tasks(&self) -> Vec<usize> {
        self.tasks.iter().map(|count| count.load(Ordering::SeqCst)).collect()
    }

    /// Stops every server and removes every folder.
    pub fn shutdown(mut self) {
        self.stop();
    }

    fn stop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        self.folders.clear();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A cluster in which every node sees the disk.
pub async fn local_cluster(executors: usize) -> Cluster {
    cluster_that_sees(Sight::Shared, &vec![Sight::Shared; executors]).await
}

/// A cluster whose scheduler and executors see what they are told to.
pub async fn cluster_that_sees(scheduler: Sight, executors: &[Sight]) -> Cluster {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("cluster")
        .enable_all()
        .build()
        .expect("a runtime");
    let sights = executors.to_vec();
    let parts = runtime.spawn(async move {
        let mut folders = Vec::new();
        let mut tasks = Vec::new();
        let (address, server) = start_scheduler(scheduler, sights.len(), &mut folders).await;
        for &sight in &sights {
            tasks.push(start_executor(address, sight, &mut folders).await);
        }
        while !sights.is_empty() && !server.is_ready() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        (address, tasks, folders)
    });
    let (address, tasks, folders) = parts.await.expect("the cluster starts");
    Cluster { address, tasks, folders, runtime: Some(runtime) }
}

async fn start_scheduler(
    sight: Sight,
    executors: usize,
    folders: &mut Vec<TempDir>,
) -> (SocketAddr, Server) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port for the scheduler");
    let address = listener.local_addr().expect("its address");
    let disk = folder(folders);
    let state = BallistaCluster::new_memory(
        address.to_string(),
        Arc::new(move |config| {
            let state = default_session_builder(config)?;
            blind(&disk, sight, state.runtime_env());
            Ok(state)
        }),
        Arc::new(default_config_producer),
    );
    let config = SchedulerConfig {
        bind_host: "127.0.0.1".to_owned(),
        bind_port: address.port(),
        external_host: "127.0.0.1".to_owned(),
        min_ready_executors: executors.max(1),
        ..SchedulerConfig::default()
    }
    .with_scheduler_policy(TaskSchedulingPolicy::PullStaged);
    let server = create_scheduler(state, Arc::new(config)).await;
    let server: Server = server.expect("a scheduler");
    tokio::spawn(start_grpc_service_with_listener(listener, server.clone()));
    (address, server)
}

async fn start_executor(
    scheduler: SocketAddr,
    sight: Sight,
    folders: &mut Vec<TempDir>,
) -> Arc<AtomicUsize> {
    const VCORES: usize = 2;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port for the executor");
    let port = listener.local_addr().expect("its address").port();
    let work = folder(folders);
    let disk = folder(folders);
    let registration = ExecutorRegistration {
        id: new_instance_id(),
        host: Some("127.0.0.1".to_owned()),
        port: u32::from(port),
        // Executors that pull their tasks are not called back.
        grpc_port: 0,
        specification: Some(ExecutorSpecification::default().with_vcores(VCORES as u32).into()),
        os_info: Some(ExecutorOperatingSystemSpecification::default().into()),
        ballista_protocol_version: BALLISTA_PROTOCOL_VERSION,
    };
    let tasks = Arc::new(AtomicUsize::new(0));
    let executor = Executor::with_default_execution_engine(
        registration,
        &work,
        Arc::new(move |_| {
            let runtime = RuntimeEnvBuilder::new().build_arc()?;
            blind(&disk, sight, &runtime);
            Ok(runtime)
        }),
        Arc::new(default_config_producer),
        Arc::new(BallistaFunctionRegistry::default()),
        Arc::new(Counter(Arc::clone(&tasks))),
        VCORES,
    );
    let flight = FlightServiceServer::new(BallistaFlightService::new(work));
    tokio::spawn(
        create_grpc_server(&GrpcServerConfig::default())
            .add_service(flight)
            .serve_with_incoming(TcpListenerStream::new(listener)),
    );
    let client =
        SchedulerGrpcClient::connect(format!("http://{scheduler}")).await.expect("the scheduler");
    let codec: BallistaCodec<LogicalPlanNode, PhysicalPlanNode> = BallistaCodec::default();
    tokio::spawn(poll_loop(client, Arc::new(executor), codec, None, None, ExecutorHealth::new()));
    tasks
}

fn folder(folders: &mut Vec<TempDir>) -> String {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().to_str().expect("a plain path").to_owned();
    folders.push(folder);
    path
}

/// Puts an empty disk where the real one was.
fn blind(disk: &str, sight: Sight, runtime: &RuntimeEnv) {
    if sight == Sight::Blind {
        let empty = LocalFileSystem::new_with_prefix(Path::new(disk)).expect("an empty disk");
        let files = ObjectStoreUrl::local_filesystem();
        runtime.register_object_store(files.as_ref(), Arc::new(empty));
    }
}

struct Counter(Arc<AtomicUsize>);

impl ExecutorMetricsCollector for Counter {
    fn record_stage(&self, _: &JobId, _: usize, _: usize, _: Arc<dyn QueryStageExecutor>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}
