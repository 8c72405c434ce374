//! Two files as people read them.

use plimsoll_emit::target::{EmitInput, EmitSettings, Target, emit};
use plimsoll_study::PlanFile;

fn written(target: Target, pool: usize) -> String {
    let mut plan: PlanFile =
        serde_json::from_str(include_str!("../../fixtures/plan.json")).expect("a plan");
    plan.pools = vec![plan.pools.remove(pool)];
    let settings = EmitSettings::default();
    let found = emit(target, &EmitInput { plan: &plan, settings: &settings }).expect("files");
    assert_eq!(found.files.len(), 1);
    found.files[0].text.clone()
}

/// Starts that take longer than Kubernetes' longest period, a floor of several days, and one over the end of the week.
#[test]
fn keda() {
    insta::assert_snapshot!(written(Target::Keda, 1), @r###"
    # Plan 5eed0123456789ab (Support and agents, week 47), as of 2026-11-15.
    # Made by: plimsoll emit plan.json --target keda
    apiVersion: keda.sh/v1alpha1
    kind: ScaledObject
    metadata:
      name: agent
      annotations:
        plimsoll.dev/plan: "5eed0123456789ab"
        plimsoll.dev/pool: "agent"
    spec:
      scaleTargetRef:
        apiVersion: apps/v1
        kind: Deployment
        name: agent
      # replicas: the fewest of any hour of the plan, reserve included
      minReplicaCount: 6
      # replicas: the most that the plan has
      maxReplicaCount: 11
      # seconds between two decisions, as the plan was checked with
      pollingInterval: 15
      fallback:
        failureThreshold: 3
        # replicas without a signal: steady 5 + forecast 2 + cold cache 1 = 8, which carry the planned
        # demand of the busiest hour
        replicas: 8
        behavior: currentReplicasIfHigher
      advanced:
        horizontalPodAutoscalerConfig:
          behavior:
            # seconds, rounded up; 2251 in the plan, and 1800 is the longest period there is: nine
            # starts in ten take 2,250 s or less
            scaleUp:
              stabilizationWindowSeconds: 0
              selectPolicy: Max
              # share of the threshold, rounded down; Kubernetes 1.34, or 1.33 with its feature gate
              tolerance: "0.066"
              policies:
              - type: Pods
                value: 5
                periodSeconds: 1800
            # seconds, rounded up; 2251 in the plan, and 1800 is the longest period there is: a shorter
            # dip is chance
            scaleDown:
              stabilizationWindowSeconds: 3600
              selectPolicy: Min
              # share of the threshold, rounded down; Kubernetes 1.34, or 1.33 with its feature gate
              tolerance: "0.066"
              policies:
              - type: Pods
                value: 1
                periodSeconds: 1800
      triggers:
      - type: prometheus
        name: fresh_tokens
        metricType: AverageValue
        metadata:
          serverAddress: "http://prometheus.monitoring:9090"
          query: 'sum(rate(sglang:prompt_tokens_total{model_name="qwen3-coder-480b-a35b"}[2m])) - (sum(rate(sglang:cached_tokens_total{model_name="qwen3-coder-480b-a35b"}[2m])) or vector(0))'
          # fresh prompt tokens/s/replica, rounded down: 90% of the load line of a replica; but without
          # a gateway engines count it, which is what they served and flattens where the pool is full:
          # what is in flight goes on rising
          threshold: "10700"
          ignoreNullValues: "false"
      - type: prometheus
        name: in_flight
        metricType: AverageValue
        metadata:
          serverAddress: "http://prometheus.monitoring:9090"
          query: 'sum(sglang:num_running_reqs{model_name="qwen3-coder-480b-a35b"}) + sum(sglang:num_queue_reqs{model_name="qwen3-coder-480b-a35b"})'
          # calls/replica, rounded down: 90% of what is in flight at the load line
          threshold: "21.62"
          ignoreNullValues: "false"
      - type: prometheus
        name: queue_depth
        metricType: AverageValue
        metadata:
          serverAddress: "http://prometheus.monitoring:9090"
          query: 'sum(sglang:num_queue_reqs{model_name="qwen3-coder-480b-a35b"})'
          # waiting calls/replica, rounded down: 50% of the calls that may wait before anybody is turned
          # away
          threshold: "5"
          ignoreNullValues: "false"
      - type: prometheus
        name: ttft_p90
        metricType: Value
        metadata:
          serverAddress: "http://prometheus.monitoring:9090"
          query: '(histogram_quantile(0.9, sum by (le) (rate(sglang:time_to_first_token_seconds_bucket{model_name="qwen3-coder-480b-a35b"}[2m]))) >= 0) or vector(0)'
          # s, rounded down: 80% of what is promised to the first token; where nobody calls there is no
          # quantile, and 0 stands for it, so that a quiet pool is not taken for a lost signal
          threshold: "4.8"
          ignoreNullValues: "false"
      # 11 replicas as planned for Tue 2026-11-17 09:00 to Fri 2026-11-20 20:00 UTC; begins 38 min
      # earlier, rounded up, for them to start
      - type: cron
        name: floor_1
        metadata:
          timezone: UTC
          start: "22 8 * * 2"
          end: "0 20 * * 5"
          desiredReplicas: "11"
      # 8 replicas as planned for Sun 2026-11-22 16:00 to Mon 2026-11-23 05:00 UTC; begins 38 min
      # earlier, rounded up, for them to start
      - type: cron
        name: floor_2
        metadata:
          timezone: UTC
          start: "22 15 * * 0"
          end: "0 5 * * 1"
          desiredReplicas: "8"
    "###);
}

#[test]
fn rules() {
    insta::assert_snapshot!(written(Target::PrometheusRules, 0), @r###"
    # Plan 5eed0123456789ab (Support and agents, week 47), as of 2026-11-15.
    # Made by: plimsoll emit plan.json --target prometheus-rules
    groups:
    - name: "plimsoll.chat"
      interval: "15s"
      rules:
      - record: "plimsoll:fresh_tokens:rate2m"
        expr: 'sum(rate(vllm:prompt_tokens_by_source_total{source="local_compute",model_name="llama-3.3-70b"}[2m]))'
        labels:
          pool: "chat"
      - record: "plimsoll:output_tokens:rate2m"
        expr: 'sum(rate(vllm:generation_tokens_total{model_name="llama-3.3-70b"}[2m]))'
        labels:
          pool: "chat"
      - record: "plimsoll:requests:rate2m"
        expr: 'sum(rate(vllm:request_success_total{model_name="llama-3.3-70b"}[2m]))'
        labels:
          pool: "chat"
      - record: "plimsoll:in_flight:sum"
        expr: 'sum(vllm:num_requests_running{model_name="llama-3.3-70b"}) + sum(vllm:num_requests_waiting{model_name="llama-3.3-70b"})'
        labels:
          pool: "chat"
      - record: "plimsoll:waiting:sum"
        expr: 'sum(vllm:num_requests_waiting{model_name="llama-3.3-70b"})'
        labels:
          pool: "chat"
      - record: "plimsoll:kv_share:max"
        expr: 'max(vllm:kv_cache_usage_perc{model_name="llama-3.3-70b"})'
        labels:
          pool: "chat"
      - record: "plimsoll:replicas:count"
        expr: 'count(count by (instance) (vllm:num_requests_running{model_name="llama-3.3-70b"}))'
        labels:
          pool: "chat"
      # fresh prompt tokens/s of a replica at its load line, rounded down; 1 is at the line
      - record: "plimsoll:load_line:ratio"
        expr: 'plimsoll:fresh_tokens:rate2m{pool="chat"} / (5777 * plimsoll:replicas:count{pool="chat"})'
        labels:
          pool: "chat"
          resource: fresh_tokens
      # output tokens/s of a replica at its load line, rounded down; 1 is at the line
      - record: "plimsoll:load_line:ratio"
        expr: 'plimsoll:output_tokens:rate2m{pool="chat"} / (921.3 * plimsoll:replicas:count{pool="chat"})'
        labels:
          pool: "chat"
          resource: output_tokens
      # calls in flight of a replica at its load line, rounded down; 1 is at the line
      - record: "plimsoll:load_line:ratio"
        expr: 'plimsoll:in_flight:sum{pool="chat"} / (42.6 * plimsoll:replicas:count{pool="chat"})'
        labels:
          pool: "chat"
          resource: in_flight
      # beyond the load line the plan does not vouch for its promises
      - alert: PlimsollAboveLoadLine
        expr: 'max by (pool) (plimsoll:load_line:ratio{pool="chat"}) > 1'
        for: "2m"
        labels:
          severity: page
          pool: "chat"
        annotations:
          summary: "chat: more load than replicas carry within their promises"
          description: "{{ $value | humanizePercentage }} of the load line. Look whether replicas are missing (plimsoll:replicas:count against the plan), then whether demand is above its forecast, then whether calls are longer than planned."
          plimsoll_plan: "5eed0123456789ab"
      # the demand that was planned for, its 0.95 quantile, as `plimsoll watch` exports it; lasts 1/4 of
      # a step of 3600 s; silent where nobody watches
      - alert: PlimsollForecastMiss
        expr: 'plimsoll:fresh_tokens:rate2m{pool="chat"} > on (pool) max by (pool) (plimsoll_forecast_tokens{pool="chat",resource="fresh_tokens",quantile="0.95"})'
        for: "900s"
        labels:
          severity: ticket
          pool: "chat"
        annotations:
          summary: "chat: more comes than was planned for"
          description: "{{ $value | humanize }} fresh prompt tokens/s. Replicas follow as long as there are any: plan again from what was measured (plimsoll plan), and raise quotas before they bind."
          plimsoll_plan: "5eed0123456789ab"
      # share of calls that take 2.5 s or less to the first token; the next edge of its histogram above
      # the 2 s promised to the first token: looser
      - record: "plimsoll:ttft_good:ratio_rate5m"
        expr: 'sum(rate(vllm:time_to_first_token_seconds_bucket{model_name="llama-3.3-70b",le="2.5"}[5m])) / sum(rate(vllm:time_to_first_token_seconds_count{model_name="llama-3.3-70b"}[5m]))'
        labels:
          pool: "chat"
      # the share of calls that must be good is 0.99
      - alert: PlimsollTtftMissed
        expr: 'plimsoll:ttft_good:ratio_rate5m{pool="chat"} < 0.99'
        for: "5m"
        labels:
          severity: page
          pool: "chat"
        annotations:
          summary: "chat: too many calls take more than 2 s to the first token"
          description: "The plan promises 0.99 of calls to take 2 s or less to the first token. Look at PlimsollAboveLoadLine first; where load is below its line, look at longer prompts, a colder cache or a slow replica."
          plimsoll_plan: "5eed0123456789ab"
      # share of calls that take 2 s or less in line; the next edge of its histogram above the 1.87 s
      # that a call may wait: looser
      - record: "plimsoll:queue_age_good:ratio_rate5m"
        expr: 'sum(rate(vllm:request_queue_time_seconds_bucket{model_name="llama-3.3-70b",le="2.0"}[5m])) / sum(rate(vllm:request_queue_time_seconds_count{model_name="llama-3.3-70b"}[5m]))'
        labels:
          pool: "chat"
      # the share of calls that must be good is 0.99
      - alert: PlimsollQueueTooOld
        expr: 'plimsoll:queue_age_good:ratio_rate5m{pool="chat"} < 0.99'
        for: "5m"
        labels:
          severity: page
          pool: "chat"
        annotations:
          summary: "chat: too many calls take more than 1.87 s in line"
          description: "The plan promises 0.99 of calls to take 1.87 s or less in line. Look at PlimsollAboveLoadLine first; where load is below its line, look at longer prompts, a colder cache or a slow replica."
          plimsoll_plan: "5eed0123456789ab"
      # sequences/s that lost their blocks: none is planned, so any that go on are too many
      - alert: PlimsollKvOvercommit
        expr: 'sum(rate(vllm:num_preemptions_total{model_name="llama-3.3-70b"}[2m])) > 0'
        for: "10m"
        labels:
          severity: ticket
          pool: "chat"
        annotations:
          summary: "chat: sequences lose their cache and are computed again"
          description: "The plan has none lose their cache. Hold sequences at once and the longest context of the engine against the plan's limits; fewer sequences at once are faster than taking turns."
          plimsoll_plan: "5eed0123456789ab"
      # 4 decisions of 15 s without a word
      - alert: PlimsollSignalLost
        expr: 'absent(vllm:num_requests_running{model_name="llama-3.3-70b"})'
        for: "60s"
        labels:
          severity: page
          pool: "chat"
        annotations:
          summary: "chat: no replica reports"
          description: "Autoscalers stand on this signal. Look whether pods are there, whether they are scraped, and whether the engine's version still has this metric (plimsoll doctor)."
          plimsoll_plan: "5eed0123456789ab"
    "###);
}
