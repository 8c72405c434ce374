//! Pools from the objects of KServe and Dynamo, which start engines by themselves.

use super::command::{image, with_image};
use super::draft::{Draft, Gathered, Place, Said, Source};
use super::flags::{arguments as flags, flag};
use super::kube::{
    File, arguments, container, environment, pass, pod, pod_settings, replicas, resources, whole,
};
use super::words::commands;
use crate::yaml::Node;

/// KServe: a predictor is a model with a runtime, or a pod.
pub(super) fn inference_service(file: &File<'_>, spec: &Node, draft: &mut Draft) -> bool {
    let Some(predictor) = spec.get("predictor") else { return false };
    let least = predictor.get("minReplicas");
    let count = whole(least).unwrap_or(1);
    let place = least.map_or_else(
        || draft.place.saying("no minReplicas: one"),
        |node| file.said("minReplicas", node),
    );
    draft.replicas = Some(Said::new(count, &place));
    if let Some(node) = predictor.get("maxReplicas")
        && let Some(most) = whole(Some(node)).filter(|most| *most >= count)
    {
        draft.range = Some(Said::new((count, most), &file.said("maxReplicas", node)));
    }
    if let Some(workers) = predictor.get("workerSpec") {
        for (key, name) in [("tensorParallelSize", "tp-size"), ("pipelineParallelSize", "pp-size")]
        {
            if let Some(node) = workers.get(key) {
                flag(name, node.text(), &file.said(key, node), draft);
                if key == "pipelineParallelSize" {
                    draft.nodes = whole(Some(node)).map(|n| Said::new(n, &file.said(key, node)));
                }
            }
        }
    }
    let Some(model) = predictor.get("model") else { return pod(file, predictor, draft) };
    let format = model.find("modelFormat.name").and_then(Node::text).unwrap_or_default();
    let runtime = model.get("runtime").and_then(Node::text).unwrap_or_default();
    let named = format!("{format} {runtime}").to_lowercase();
    let stand_in = if named.contains("sglang") {
        "sglang"
    } else if named.contains("trt") || named.contains("tensorrt") {
        "tensorrt-llm"
    } else if named.contains("vllm") || named.contains("huggingface") {
        "vllm"
    } else {
        "unknown"
    };
    let place = model.get("runtime").or(model.get("modelFormat")).unwrap_or(model);
    let place = file.at(place, &format!("runtime {}", named.trim()));
    if let Some(node) = model.get("storageUri").or(model.find("storage.path"))
        && let Some(text) = node.text()
    {
        draft.model = Some(Said::new(text.to_owned(), &file.said("storageUri", node)));
    }
    let own = match model.get("image") {
        Some(node) => image(node.text().unwrap_or_default(), &file.at(node, "image"), draft),
        None => image(stand_in, &place, draft),
    };
    let known = environment(file, model, draft);
    let words = arguments(file, model.get("args"), &known);
    let started = with_image(own, &words, &place, file.name, draft, &mut known.clone(), 0);
    resources(file, model.get("resources"), draft);
    pod_settings(file, predictor, draft);
    // The model is where the runtime puts it, whatever the arguments call that directory.
    let mounted = |said: &Said| said.value.starts_with("/mnt/models");
    if draft.model.as_ref().is_some_and(mounted)
        && let Some(node) = model.get("storageUri")
        && let Some(text) = node.text()
    {
        draft.model = Some(Said::new(text.to_owned(), &file.said("storageUri", node)));
    }
    if let Some(node) =
        model.find("args").map(Node::items).unwrap_or_default().iter().find(|item| {
            item.text().is_some_and(|text| {
                text.starts_with("--model_name") || text.starts_with("--model-name")
            })
        })
        && let Some((_, name)) = node.text().unwrap_or_default().split_once('=')
    {
        draft.served =
            Some(Said::new(name.to_owned(), &file.at(node, node.text().unwrap_or_default())));
        draft.unread.retain(|line| !line.contains("model_name") && !line.contains("model-name"));
    }
    started
}

/// KServe's newer object: a decode part of its own, and perhaps a prefill part.
pub(super) fn llm_inference_service(
    file: &File<'_>,
    spec: &Node,
    draft: Draft,
    gathered: &mut Gathered,
) {
    let split = spec.get("prefill");
    let mut parts = vec![(spec, draft.name.clone(), split.map(|_| "decode"))];
    parts.extend(split.map(|part| (part, format!("{}-prefill", draft.name), Some("prefill"))));
    for (part, name, role) in parts {
        let mut draft = Draft { name, ..draft.clone() };
        if let Some(node) = spec.find("model.uri")
            && let Some(text) = node.text()
        {
            draft.model = Some(Said::new(text.to_owned(), &file.said("uri", node)));
        }
        if let Some(node) = spec.find("model.name")
            && let Some(text) = node.text()
        {
            draft.served = Some(Said::new(text.to_owned(), &file.said("name", node)));
        }
        replicas(file, part, &mut draft);
        for (key, name) in [("tensor", "tp-size"), ("pipeline", "pp-size"), ("data", "dp-size")] {
            if let Some(node) = part.get("parallelism").and_then(|own| own.get(key)) {
                flag(name, node.text(), &file.said(key, node), &mut draft);
            }
        }
        if let Some(node) = part.find("parallelism.expert")
            && node.flag() == Some(true)
        {
            draft.experts_everywhere = Some(file.said("expert", node));
        }
        if let Some(role) = role {
            draft.role = Some(Said::new(role.to_owned(), &file.at(part, role)));
        }
        let place = draft.place.saying("LLMInferenceService");
        // Its runtime is vLLM, whether the template names an image or not.
        let engine = draft.engine.clone();
        let own = image("vllm", &place, &mut draft);
        draft.engine = own.map(|own| Said::new(own, &place)).or(engine);
        if let Some(template) = part.get("template")
            && !pod(file, template, &mut draft)
        {
            // Without an image the runtime's own is meant, and these are its arguments.
            let containers = template.get("containers").map(Node::items).unwrap_or_default();
            let main =
                containers.iter().find(|own| own.get("name").and_then(Node::text) == Some("main"));
            if let Some(own) = main.or(containers.first()) {
                let mut known = environment(file, own, &mut draft);
                let more = known.remove("VLLM_ADDITIONAL_ARGS").unwrap_or_default();
                let mut words = arguments(file, own.get("args"), &known);
                words.extend(commands(&more, own.at.line, &mut known).into_iter().flatten());
                flags(&words, file.name, &mut draft);
                draft.unread.retain(|line| !line.contains("VLLM_ADDITIONAL_ARGS"));
                resources(file, own.get("resources"), &mut draft);
            }
        }
        gathered.pools.push(draft);
    }
}

/// Dynamo: services by name, the workers among them.
pub(super) fn dynamo(file: &File<'_>, spec: &Node, place: &Place, gathered: &mut Gathered) {
    let before = gathered.pools.len();
    for (name, service) in spec.get("services").map(Node::entries).unwrap_or_default() {
        let name = name.text().unwrap_or_default();
        let place = file.at(service, &format!("service {name}"));
        let mut draft = Draft::new(Source::Manifest, "DynamoGraphDeployment", name, place.clone());
        replicas(file, service, &mut draft);
        let started = service
            .find("extraPodSpec.mainContainer")
            .is_some_and(|own| container(file, own, &mut draft));
        if !started {
            pass(gathered, &place, "is no worker with an engine that is known here");
            continue;
        }
        resources(file, service.get("resources"), &mut draft);
        if let Some(pod) = service.get("extraPodSpec") {
            pod_settings(file, pod, &mut draft);
        }
        if let Some(node) = service.get("subComponentType")
            && let Some(role @ ("prefill" | "decode")) = node.text()
        {
            draft.role = Some(Said::new(role.to_owned(), &file.said("subComponentType", node)));
        }
        gathered.pools.push(draft);
    }
    if gathered.pools.len() == before {
        pass(gathered, place, "has no worker with an engine that is known here");
    }
}
