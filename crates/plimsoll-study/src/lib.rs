//! The sequences: inputs and a seed in, results as plain structs out.
//!
//! **Owns** the order in which the rooms are called, and the result structs, which are what leaves the
//! house as JSON. **Refuses** formats, I/O and the wall clock: the same input and seed give the same
//! result on any number of threads.
//!
//! [`demand()`] says what comes, [`fit()`] what there is room for, [`calibrate()`] how long a step
//! takes, [`simulate()`] what becomes of a demand in a fleet, [`curve()`] how much of it the fleet
//! may carry, [`limits()`] what a pool lets in, [`scaling_policy()`] how it follows its demand and
//! [`check_scaling()`] what that is worth, [`profile()`] what a log says of the demand that was, [`reconcile()`]
//! what came of a forecast, and [`cost()`] what was paid, who used it and what one success costs.
//!
//! ```
//! use plimsoll_stats::{Dist, Process, Seed, Spacing};
//! use plimsoll_study::{DemandInput, demand};
//! use plimsoll_workload::{Call, Class, Hour, Lengths, Shift, Step, Task};
//!
//! let lengths = Lengths::independent(Dist::constant(1000.0)?, Dist::constant(60.0)?);
//! let class = Class {
//!     name: "chat".to_owned(),
//!     process: Process::Flow { spacing: Spacing::Poisson, burst: None },
//!     task: Task::steps(vec![Step::Call(Call::new(lengths, 0.0))]),
//!     hours: vec![Hour::new(100.0, Shift::NONE)],
//! };
//! let input = DemandInput { classes: vec![class], pools: Vec::new(), window_s: 10.0, runs: 4, level: 0.95, seed: Seed::new(7), threads: 1 };
//! let demand = demand(&input)?;
//! // 100 requests a second on average; one window in twenty holds some five more.
//! let requests = &demand.rows[0].baseline;
//! assert!(requests.p95_per_s > 102.0 && requests.p95_per_s < 109.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod calibrate;
mod context;
mod cost;
mod curve;
mod engine_runs;
mod fit;
mod headroom;
mod limits;
mod measured;
mod names;
mod performance;
mod plan;
mod pool;
mod pool_performance;
mod profile;
mod reconcile;
mod replay;
mod review;
mod scaling;
mod steady;
mod stress;
mod validate;
mod validate_performance;
mod watch;
mod what_if;

pub use calibrate::{
    CalibrateError, CalibrateInput, Calibration, Coefficient, CoefficientInterval, PointReport,
    Region, calibrate,
};
pub use cost::{
    BillCheck, BuyCost, CommitmentAdvice, CommitmentAsked, Cost, CostBounds, CostFactors,
    CostInput, CostLine, CostPerSuccess, CostPeriod, ExpectedUsage, FocusRow, GapLine, HostedOffer,
    LimitFill, LinePrice, OtherCosts, PaidPool, PayingClass, PoolWork, PoolWorkInput, PriceWarning,
    SuccessBudget, UnitCost, ValueCost, WastedCost, charges, cost, expected_usage, focus_rows,
    output_reserved, pool_work, replicas_needed, reserve_within, work_of,
};
pub use curve::{
    Curve, CurveBinding, CurveMark, CurvePoint, Peak, Percentile, ResourceLine, Tail, TailMetric,
    curve,
};
pub use engine_runs::{
    EngineSummary, GoodOutcome, KnownRun, MetricOutcome, RunOutcome, asks_for_whole_prompts,
    engine_summary, known_run, simulate_run,
};
pub use fit::{
    BudgetLine, Change, ClassContext, ContextFit, Fit, FitError, FitInput, ObservedLine,
    class_context, fit, published_format,
};
pub use headroom::{Loss, Lost, RowVerdict};
pub use limits::{
    ClassLimits, ContextPoint, Contexts, EngineFlags, EngineLimits, FeatureBudget, Limit,
    LimitMargins, LimitedClass, LimitsInput, PoolLimits, PrefillPace, Promises, ReplicaAtLine,
    TenantLimits, limits,
};
pub use measured::{
    BenchPoint, EngineRun, Flag, Latency, Length, Load, Origin, RunRequest, RunSetup, RunStep,
    SharedPrefix,
};
pub use names::class_name;
pub use performance::{
    Metric, PerformanceCase, PerformanceInputs, PerformanceObserved, Prepared, Target, prepare,
};
pub use plan::{
    Alternative, Autoscaler, BudgetPlan, Candidate, Cap, Caps, ClassLabels, Expected,
    ExpectedClass, ExpectedLevels, FileBehaviour, FileClassLimits, FileFlags, FileFleet, FileFloor,
    FileForecast, FileForecastClass, FileLevels, FileLimit, FileLimits, FileNodes, FilePlacement,
    FilePolicy, FilePool, FileResource, FileScaling, FileTenantLimits, FileThreshold, Fleet,
    FleetLine, Floor, HourCost, LaunchTable, LineClass, MeasuredLine, Nodes, Obstacle, Order,
    Parallelism, PlaceFacts, Placed, Placement, Plan, PlanFile, PlanInput, PlannedPool, PoolBlock,
    PoolFacts, PoolLine, PoolWindows, PriceFacts, Proof, Reach, Replicas, ReserveAsked,
    ReserveLine, RunsOutFirst, ScalingPlan, SharedRow, StartupPrice, TableRow, TokenPrices,
    UnitOfLoss, WindowCost, expected, plan,
};
pub use plimsoll_load::ClassTarget;
pub use plimsoll_load::{
    AttemptCounts, Binding, BrokenPromise, BusyHour, CacheHits, Cause, ClassResult, Demand,
    DemandInput, DemandRow, Distribution, Ends, Gaps, GoodputWindow, High, Level, LoadLine,
    LoadOutcome, LoadQuestion, LoadVerdict, Memo, MemoCount, Missed, PoolDemand, PoolResult,
    PoolRouting, ProviderResult, Record, RegionResult, ReplicaSpread, Resource, ScalingResult,
    SimulateInput, SimulatedClass, SimulatedPool, Simulation, Source, Span, Spell, Spread,
    StudyError, Surge, ToolResult, Utilisation, Verdict, Window, broken_promises, busiest_hours,
    demand, pool_routing, simulate, simulate_known, too_short,
};
pub use pool::{Band, PoolSteps, pool_steps};
pub use pool_performance::{
    Bands, Phase, PoolPerformance, PoolPerformanceInput, ServedLengths, pool_performance,
    served_lengths,
};
pub use profile::{
    About, ArrivalModel, Autocorrelations, Budget, BurstModel, Bursts, ClassProfile,
    ClientConcentration, ClientCv, ClientShare, ClientSum, Clients, Clock, ClockTick, Correlation,
    DemandShape, EXACT_ROWS, End, EndShares, ExponentialFit, Failures, Finding, Fits, GapModel,
    GapSums, Gathered, Gathering, InterArrival, JointBin, JointLengths, JointPoint, JointPoints,
    JointSum, Keyed, Kin, Known, Lengths, Levels, LognormalFit, MeanLevels, ModelDispersion, Pace,
    PaceInput, ParetoFit, PoissonComparison, PoissonRequests, PoissonTokens, PrefillQueue,
    PrefixReuse, Profile, ProfileInput, QueueCapacities, QueueWait, QueueWaits, RatioLevels,
    ResidentContext, ResidentLevels, ResidentTokens, ReuseInput, ReuseLevels, ReuseRequest, Season,
    SeasonVerdict, Seasonality, SecondSum, Seen, SeriesClient, SeriesGaps, SeriesInput,
    SeriesProfile, SeriesSeasonality, SeriesWindow, SessionRates, SessionReuse, ShapeFit, Silence,
    SilenceKind, Silences, Sums, TotalSum, WindowLevels, Windows, arrival_model, pool_pace,
    prefix_reuse, profile, series_profile,
};
pub use reconcile::{
    AssumptionCheck, BeforeAfter, ClassMix, CostChange, CostTerm, LevelCoverage, MixRow, NextClass,
    NextLevels, NextValues, ReconcileError, ReconcileInput, ReconciledSeries, Reconciliation,
    Service, ServiceChange, ShareEstimate, Shortfall, WorstStep, reconcile,
};
pub use replay::{Replay, Stretch, replay};
pub use review::{
    Ahead, AheadBand, AheadResource, Answered, Assumption, DearClass, Decision, FleetCurve, Method,
    OfPool, Provenance, Review, ReviewParts, ReviewVerdict, Validated, Watch, Whole, review, whole,
};
pub use scaling::{
    Basis, CeilingShort, ClassHours, FloorWindow, PoolCheck, PoolWay, Regret, RestOfHorizon,
    RestWay, ScalingBehaviour, ScalingCheck, ScalingCheckInput, ScalingInput, ScalingPolicy,
    ScalingSignal, ScalingThreshold, ScalingWay, SignalRole, SimulatedSignal, ThresholdKind,
    ThresholdShares, WayKind, WayPoint, ceiling_short, check_scaling, ramp_spells, scaling_policy,
};
pub use steady::{Steady, SteadyInput, steady};
pub use stress::{
    Breaks, ChangeSide, Comparison, Condition, FailureShape, Guard, Lever, Moved, NO_RECOVERY,
    OfFleets, PressureChange, Proposed, ProposedPool, Stress, StressHour, StressInput,
    StressResult, Stressed, StressedAttainment, StressedCost, StressedResource, Tornado,
    TornadoBar, TornadoEnd, Uncertain, stress,
};
pub use validate::{
    MemoryCase, MemoryInputs, MemoryObserved, MemoryOutcome, MemorySummary, MemoryValidation,
    validate_memory,
};
pub use validate_performance::{
    GroupError, NotSeen, NumberOutcome, PerformanceOutcome, PerformanceSummary,
    PerformanceValidation, Ranking, validate_performance,
};
pub use watch::{
    Advice, Ask, Drift, ForecastNow, InflectionNow, PoolAdvice, PoolSighting, ReplicaNow,
    ReplicaSighting, ResourceNow, Sighting, Watcher,
};
pub use what_if::{
    WhatIf, WhatIfBase, WhatIfBasis, WhatIfCost, WhatIfLevers, WhatIfLine, WhatIfPoint, WhatIfPool,
    WhatIfRow,
};
