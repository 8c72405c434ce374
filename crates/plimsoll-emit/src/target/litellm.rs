//! LiteLLM's proxy: limits of pools in its file, limits of tenants as the calls that set them.

use plimsoll_fleet::metrics::Reporter;
use plimsoll_study::{FileClassLimits, FileLimit, FileLimits};
use serde_json::{Map, Value, json};

use super::pool::{DIGITS, Emission, Pool, whole, whole_down};
use crate::manifest::{Item, flag, list, map, number, rounded_down, text};

pub(super) fn emit(own: &mut Emission<'_>) {
    let mut models = Vec::new();
    for pool in own.pools.clone() {
        match pool.limits {
            Some(limits) => models.push(model(own, &pool, limits)),
            None => own.note(format!("`{}`: the plan has no limits for it", pool.pool.name)),
        }
    }
    if models.is_empty() {
        return;
    }
    let document = map([
        ("model_list", list(models)),
        (
            "router_settings",
            map([
                ("routing_strategy", text("simple-shuffle")),
                ("enable_pre_call_checks", flag(true)),
            ]),
        ),
        (
            "general_settings",
            map([(
                "token_rate_limit_type",
                text("total")
                    .because("the plan's tokens/min count prompts, cached ones too, and outputs"),
            )]),
        ),
    ]);
    own.file("litellm-config.yaml".to_owned(), &[document]);
    own.note("LiteLLM counts tokens when a call is over: max_parallel_requests is the hard limit, tokens/min are fairness");
    let teams = teams(own);
    if !teams.is_empty() {
        own.raw_file("litellm-teams.jsonl".to_owned(), teams);
        own.note("each line of `litellm-teams.jsonl` is the body of a POST to /team/new; a team has no limit of calls at once there, so the plan's are left out: set max_parallel_requests on its keys");
    }
}

fn model(own: &mut Emission<'_>, pool: &Pool<'_>, limits: &FileLimits) -> Item {
    let provider = match pool.engine.as_ref().map(|engine| engine.reporter) {
        Some(Reporter::Vllm) => "hosted_vllm",
        _ => "openai",
    };
    let mut params = map([
        ("model", text(format!("{provider}/{}", pool.served))),
        (
            "api_base",
            text(format!("http://{}/v1", pool.name))
                .because("where the pool answers: not the plan's, change it to yours"),
        ),
    ]);
    for (name, limit) in pool_sums(limits) {
        match limit {
            Ok((value, why)) => params = params.with(name, number(value).because(why)),
            Err(class) => own.note(format!(
                "`{}`: {name} is left out, because the plan does not know it for class `{class}`",
                pool.pool.name
            )),
        }
    }
    map([("model_name", text(&pool.served)), ("litellm_params", params)])
}

/// A limit as it is written, and why; the class that it is not known for, where there is one.
pub(super) type Sum = Result<(String, String), String>;

/// What the classes of a pool may ask for together: tokens a minute, calls a minute, calls at once.
fn pool_sums(limits: &FileLimits) -> [(&'static str, Sum); 3] {
    [
        ("tpm", sum(limits, |class| &class.tpm, Some(DIGITS))),
        ("rpm", sum(limits, |class| &class.rpm, Some(DIGITS))),
        ("max_parallel_requests", sum(limits, |class| &class.concurrency, None)),
    ]
}

/// A limit over all classes of a pool.
pub(super) fn sum(
    limits: &FileLimits,
    of: fn(&FileClassLimits) -> &FileLimit,
    digits: Option<i32>,
) -> Sum {
    let mut all = 0.0;
    let mut unit = "";
    let mut why = Vec::new();
    for class in &limits.classes {
        let limit = of(class);
        all += limit.value.ok_or_else(|| class.class.clone())?;
        unit = &limit.unit;
        why.push(format!("`{}`: {}", class.class, limit.why));
    }
    if limits.classes.is_empty() {
        return Err("(none)".to_owned());
    }
    let value = digits
        .map_or_else(|| whole_down(all).to_string(), |digits| rounded_down(whole_of(all), digits));
    Ok((value, format!("{unit}, rounded down; {}", why.join("; "))))
}

fn whole_of(value: f64) -> f64 {
    value.max(0.0).floor()
}

/// Tokens of a minute are few enough to be exact.
fn as_f64(count: u64) -> f64 {
    count.to_string().parse().unwrap_or(f64::MAX)
}

/// A call for each tenant, with what it may ask of each model.
fn teams(own: &Emission<'_>) -> String {
    let mut names: Vec<&str> = Vec::new();
    for limits in own.pools.iter().filter_map(|pool| pool.limits) {
        for tenant in &limits.tenants {
            if !names.contains(&tenant.tenant.as_str()) {
                names.push(&tenant.tenant);
            }
        }
    }
    names.sort_unstable();
    let mut out = String::new();
    for name in names {
        let (mut models, mut tpm, mut rpm) = (Vec::new(), Map::new(), Map::new());
        for pool in &own.pools {
            let tenants = pool.limits.map_or(&[][..], |limits| &limits.tenants);
            for tenant in tenants.iter().filter(|tenant| tenant.tenant == name) {
                models.push(Value::from(pool.served.clone()));
                for (limit, into) in [(&tenant.tpm, &mut tpm), (&tenant.rpm, &mut rpm)] {
                    if let Some((value, _)) = whole(limit) {
                        let kept = into.get(&pool.served).and_then(Value::as_u64).unwrap_or(0);
                        let value = rounded_down(as_f64(kept + value), DIGITS);
                        let value: u64 = value.parse().unwrap_or(kept);
                        into.insert(pool.served.clone(), Value::from(value));
                    }
                }
            }
        }
        models.dedup();
        let body = json!({
            "team_alias": name,
            "models": models,
            "model_tpm_limit": tpm,
            "model_rpm_limit": rpm,
            "metadata": {"plimsoll.dev/plan": own.plan.id},
        });
        out.push_str(&body.to_string());
        out.push('\n');
    }
    out
}
