//! Envoy AI Gateway's `QuotaPolicy`: tokens a minute of a pool.

use super::litellm::sum;
use super::pool::{DIGITS, Emission};
use crate::manifest::{list, map, number, quoted, text};

pub(super) fn emit(own: &mut Emission<'_>) {
    let mut any = false;
    for pool in own.pools.clone() {
        let name = &pool.pool.name;
        let Some(limits) = pool.limits else {
            own.note(format!("`{name}`: the plan has no limits for it"));
            continue;
        };
        let (limit, why) = match sum(limits, |class| &class.tpm, Some(DIGITS)) {
            Ok(limit) => limit,
            Err(class) => {
                own.note(format!(
                    "`{name}`: no quota is written, because the plan does not know the tokens/min of class `{class}`"
                ));
                continue;
            }
        };
        any = true;
        let quota = map([
            (
                "mode",
                text("Shared"),
            ),
            (
                "costExpression",
                text("total_tokens").because(
                    "the plan's tokens/min count prompts, cached ones too, and outputs, each as one",
                ),
            ),
            (
                "defaultBucket",
                map([("limit", number(limit).because(why)), ("duration", quoted("1m"))]),
            ),
        ]);
        let backend = map([
            ("group", text("aigateway.envoyproxy.io")),
            ("kind", text("AIServiceBackend")),
            ("name", text(&pool.name)),
        ]);
        let model = map([
            (
                "modelName",
                text(&pool.served).because(
                    "must be the route's modelNameOverride, or it is passed over in silence",
                ),
            ),
            ("quota", quota),
        ]);
        let document = map([
            ("apiVersion", text("aigateway.envoyproxy.io/v1alpha1")),
            ("kind", text("QuotaPolicy")),
            ("metadata", own.metadata(&pool.name, Some(&pool))),
            (
                "spec",
                map([("targetRefs", list(vec![backend])), ("perModelQuotas", list(vec![model]))]),
            ),
        ]);
        own.file(format!("envoy-ai-gateway-{}.yaml", pool.name), &[document]);
    }
    if any {
        own.note("a QuotaPolicy tells classes apart by headers, which a plan does not know: classes share the quota of their pool");
        own.note("calls/min and calls at once are left out: a QuotaPolicy counts tokens only");
    }
}
