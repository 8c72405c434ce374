//! Tests that walk every key there is.

use plimsoll_testkit::sized;
use proptest::prelude::*;
use toml::de::DeTable;

use crate::read::{Presence, Shape, TableSpec, Value, example};
use crate::sections::Scenario;
use crate::{Origin, Source, builtin, json_schema, parse, profiles};

fn root() -> TableSpec {
    match Scenario::shape() {
        Shape::Table(spec) => spec(),
        _ => panic!("a scenario is a table"),
    }
}

/// Something that may stand under a key, references included.
fn sample(key: &str, shape: &Shape) -> String {
    match shape {
        Shape::Text { noun } => match *noun {
            "class" => "\"c\"".to_owned(),
            "pool" | "pool or provider" => "\"p\"".to_owned(),
            "tool" | "provider or tool" => "\"t\"".to_owned(),
            "region" => "\"r\"".to_owned(),
            "model" => "\"llama-3.1-8b\"".to_owned(),
            "accelerator" => "\"H100-SXM\"".to_owned(),
            "engine" => "\"vllm@0.24\"".to_owned(),
            "instance" => "\"p5.48xlarge\"".to_owned(),
            "name" => match key {
                "class" | "pool" | "tool" | "region" => format!("\"{}\"", &key[..1]),
                _ => "\"x\"".to_owned(),
            },
            _ => example(shape),
        },
        Shape::List(inner) if key == "by_hour" => {
            format!("[{}]", vec![example(inner); 24].join(", "))
        }
        Shape::List(inner) if key == "plan" => format!("[{0}, {0}]", sample(key, inner)),
        Shape::List(inner) => format!("[{}]", sample(key, inner)),
        Shape::Either(shapes) => sample(key, &shapes[0]),
        Shape::Table(spec) => {
            let spec = spec();
            let keys = spec.keys.iter().filter(|k| matches!(k.presence, Presence::Required));
            let keys: Vec<String> = keys.map(|k| assignment(key, k.name, &k.shape)).collect();
            format!("{{ {} }}", keys.join(", "))
        }
        _ => example(shape),
    }
}

fn assignment(table: &str, key: &str, shape: &Shape) -> String {
    // What a provider is asked for must have a price.
    match (table, key) {
        ("provider", "provider") => return "provider = \"openai\"".to_owned(),
        ("provider", "model") => return "model = \"gpt-4o\"".to_owned(),
        // Later than it begins.
        ("schedule", "to_hour") => return "to_hour = 2".to_owned(),
        _ => {}
    }
    // A table's own name is what the others refer to.
    let value = if key == "name" { sample(table, shape) } else { sample(key, shape) };
    format!("{key} = {value}")
}

/// A scenario with one of everything that can be referred to, before a key is put into one of its tables.
fn skeleton(table: &str, extra: &str) -> String {
    let parts = [
        ("study", "name = \"s\""),
        ("class", "name = \"c\"\nrate = \"1/s\"\nprofile = \"chat\""),
        ("pool", "name = \"p\"\nmodel = \"llama-3.1-8b\"\naccelerator = \"H100-SXM\""),
        ("tool", "name = \"t\"\nlatency = \"1s\""),
        ("region", "name = \"r\""),
    ];
    let mut out = String::new();
    for (name, keys) in parts {
        let header = if name == "study" { "[study]".to_owned() } else { format!("[[{name}]]") };
        let key = extra.split(" = ").next().unwrap_or_default();
        // The key under test replaces the skeleton's own.
        let kept: Vec<&str> = keys
            .lines()
            .filter(|l| name != table || !l.starts_with(&format!("{key} = ")))
            .collect();
        out.push_str(&format!("{header}\n{}\n", kept.join("\n")));
        if name == table {
            out.push_str(extra);
            out.push('\n');
        }
    }
    out
}

/// Is handed a key's path, its shape, and how to write a scenario that sets it.
type Visit<'a> = dyn FnMut(&str, &Shape, &dyn Fn(&str) -> String) + 'a;

/// Every key of every table, with the text of a scenario that sets it to `value`.
fn each_leaf(visit: &mut Visit<'_>) {
    fn walk(
        spec: &TableSpec,
        path: &str,
        depth: usize,
        wrap: &dyn Fn(&str) -> String,
        visit: &mut Visit<'_>,
    ) {
        let required: Vec<String> = spec
            .keys
            .iter()
            .filter(|k| matches!(k.presence, Presence::Required))
            .map(|k| assignment(path.split('.').next_back().unwrap_or_default(), k.name, &k.shape))
            .collect();
        for key in &spec.keys {
            let others: Vec<String> = required
                .iter()
                .filter(|r| !r.starts_with(&format!("{} = ", key.name)))
                .cloned()
                .collect();
            let set = |value: &str| {
                let mut all = others.clone();
                all.push(format!("{} = {value}", key.name));
                wrap(&format!("{{ {} }}", all.join(", ")))
            };
            let path = format!("{path}.{}", key.name);
            visit(&path, &key.shape, &set);
            if depth < 4 {
                descend(&key.shape, &path, depth, &set, visit);
            }
        }
    }
    fn descend(
        shape: &Shape,
        path: &str,
        depth: usize,
        set: &dyn Fn(&str) -> String,
        visit: &mut Visit<'_>,
    ) {
        match shape {
            Shape::Table(spec) => walk(&spec(), path, depth + 1, set, visit),
            Shape::List(inner) => {
                descend(inner, path, depth, &|v: &str| set(&format!("[{v}]")), visit)
            }
            Shape::Map(inner) => {
                descend(inner, path, depth, &|v: &str| set(&format!("{{ k = {v} }}")), visit)
            }
            Shape::Either(shapes) => {
                shapes.iter().for_each(|s| descend(s, path, depth, set, visit))
            }
            _ => {}
        }
    }
    for table in root().keys {
        let name = table.name;
        let list = matches!(table.shape, Shape::List(_));
        let spec = match &table.shape {
            Shape::Table(spec) => spec(),
            Shape::List(inner) => match &**inner {
                Shape::Table(spec) => spec(),
                _ => panic!("{name} is a list of tables"),
            },
            _ => panic!("{name} is a table"),
        };
        let in_skeleton = ["study", "class", "pool", "tool", "region"].contains(&name);
        for key in &spec.keys {
            let set = |value: &str| {
                if in_skeleton {
                    return skeleton(name, &format!("{} = {value}", key.name));
                }
                let others = spec
                    .keys
                    .iter()
                    .filter(|k| matches!(k.presence, Presence::Required) && k.name != key.name)
                    .map(|k| assignment(name, k.name, &k.shape));
                let keys: Vec<String> = others.chain([format!("{} = {value}", key.name)]).collect();
                let header = if list { format!("[[{name}]]") } else { format!("[{name}]") };
                format!("{}{header}\n{}\n", skeleton("", ""), keys.join("\n"))
            };
            let path = format!("{name}.{}", key.name);
            visit(&path, &key.shape, &set);
            descend(&key.shape, &path, 0, &set, visit);
        }
    }
}

/// A value of every kind under every key: an answer, never a panic; and whatever is accepted can be studied.
#[test]
fn every_key_survives_every_value() {
    const VALUES: [&str; 30] = [
        "0",
        "-1",
        "1",
        "1.5",
        "-0.0",
        "1e300",
        "-1e300",
        "nan",
        "inf",
        "-inf",
        "9223372036854775807",
        "-9223372036854775808",
        "99999999999999999999999999",
        "0x7fffffffffffffff",
        "true",
        "\"\"",
        "\"0\"",
        "\"-1s\"",
        "\"1e999s\"",
        "\"nan%\"",
        "\"∞\"",
        "\"$1e30/h\"",
        "[]",
        "[0]",
        "[[]]",
        "{}",
        "{ p50 = 0, p95 = 0 }",
        "{ min = 1, max = 0 }",
        "2026-02-30",
        "9999-12-31T23:59:59Z",
    ];
    let (mut tried, mut accepted, mut leaves) = (0, 0, 0);
    // In the quick tier each leaf has a fifth of the values, and each value a fifth of the leaves.
    let apart = sized(5, 1);
    each_leaf(&mut |path, _, set| {
        leaves += 1;
        for value in VALUES.into_iter().skip(leaves % apart).step_by(apart) {
            let text = set(value);
            tried += 1;
            match parse(&Source::new("x.toml", text.as_str()), builtin()) {
                Ok(loaded) => {
                    accepted += 1;
                    let today = jiff::civil::date(2026, 11, 15);
                    let Ok(demand) = loaded.demand(today) else {
                        continue;
                    };
                    for class in &demand.classes {
                        let load = class.expected_tokens(0, true);
                        assert!(!load.is_nan(), "{path} = {value} makes a NaN");
                    }
                }
                Err(mistakes) => {
                    for mistake in &mistakes {
                        let shown = mistake.render(false, 100);
                        assert!(
                            shown.len() < 4000 && !mistake.message.is_empty(),
                            "{path} = {value}: {shown}"
                        );
                    }
                }
            }
        }
    });
    // The walk reached the whole tree, and not everything is refused.
    let (all, some) = (10_000 / apart, 300 / apart);
    assert!(tried > all && accepted > some, "{accepted} of {tried} accepted");
}

/// Every key with a sensible value is accepted, so the examples in messages and schema can be pasted.
#[test]
fn every_key_accepts_its_example() {
    // These need a companion key or a longer time than the example, by design; one is refused by name.
    const NEED_MORE: [&str; 27] = [
        "autoscaling.activation",
        "autoscaling.cooldown",
        "autoscaling.down_period",
        "autoscaling.period",
        "autoscaling.polling",
        "autoscaling.up_period",
        "change.rollback",
        "incident.batch",
        "incident.class",
        "incident.load",
        "incident.target",
        "pool.disaggregation",
        "provider.model",
        "provider.provider",
        "class.burst",
        "class.arrivals",
        "class.deadline",
        "event.to",
        "pool.role",
        "pool.shares_devices_with",
        "prices.node",
        "route.fallback",
        "route.share",
        "route.shift",
        "study.catalog",
        "study.horizon",
        "study.window",
    ];
    let mut failures = Vec::new();
    each_leaf(&mut |path, shape, set| {
        if path.matches('.').count() > 1 || NEED_MORE.contains(&path) {
            return;
        }
        let key = path.rsplit('.').next().unwrap_or_default();
        let value = if key == "name" {
            sample(path.split('.').next().unwrap_or_default(), shape)
        } else {
            sample(key, shape)
        };
        let text = set(&value);
        if let Err(mistakes) = parse(&Source::new("x.toml", text.as_str()), builtin()) {
            failures.push(format!("{path} = {value}: {}", mistakes[0].message));
        }
    });
    // Event ranges, distributions and such need two keys at once; what is left must be nothing.
    let unexpected: Vec<&String> =
        failures.iter().filter(|f| !f.contains("does not fix a distribution")).collect();
    assert!(unexpected.is_empty(), "{unexpected:#?}");
}

/// Defaults and profiles are read like anything a user writes; each is shown with its reason.
#[test]
fn everything_has_an_origin() {
    for profile in profiles() {
        let text =
            format!("[[class]]\nname = \"c\"\nrate = \"1/s\"\nprofile = \"{}\"\n", profile.name);
        let loaded = parse(&Source::new("x.toml", text), builtin())
            .unwrap_or_else(|e| panic!("{}: {}", profile.name, e[0]));
        for (key, _) in &profile.keys {
            let known = match &crate::sections::Class::shape() {
                Shape::Table(spec) => spec().keys.iter().any(|k| k.name == key),
                _ => false,
            };
            assert!(known, "profile {} sets `{key}`, which no class has", profile.name);
        }
        for entry in &loaded.entries {
            match &entry.origin {
                Origin::File { line, .. } => assert!((1..=4).contains(line), "{entry:?}"),
                Origin::Default { why } => assert!(why.len() > 5, "{entry:?}"),
                Origin::Profile { name, .. } => assert_eq!(*name, profile.name),
                Origin::Catalog { as_of, .. } => assert_eq!(as_of.len(), 10),
                Origin::CommandLine { .. } => panic!("no command line was read"),
                Origin::Absent { meaning } => {
                    assert!(entry.value.is_empty() && !meaning.is_empty())
                }
            }
        }
    }
}

/// What the file says wins over the profile, the profile over the default.
#[test]
fn origins_are_in_order() {
    let text =
        "[[class]]\nname = \"c\"\nrate = \"1/s\"\nprofile = \"inline-completion\"\ncv = 3.0\n";
    let loaded = parse(&Source::new("x.toml", text), builtin()).unwrap();
    let of = |path: &str| {
        loaded.entries.iter().find(|e| e.path == path).unwrap_or_else(|| panic!("{path}"))
    };
    assert_eq!(of("class.c.cv").origin, Origin::File { file: "x.toml".to_owned(), line: 5 });
    assert!(matches!(
        of("class.c.arrivals").origin,
        Origin::Profile { name: "inline-completion", .. }
    ));
    assert!(matches!(of("class.c.priority").origin, Origin::Default { .. }));
    assert!(matches!(of("class.c.deadline").origin, Origin::Absent { .. }));
    assert!(matches!(of("study.window").origin, Origin::Default { .. }));

    let pool = "[[pool]]\nname = \"p\"\nmodel = \"llama-3.1-8b\"\naccelerator = \"h100\"\nengine = \"vllm@0.24\"\n";
    let loaded = parse(&Source::new("x.toml", format!("{text}{pool}")), builtin()).unwrap();
    let of = |path: &str| {
        loaded.entries.iter().find(|e| e.path == path).unwrap_or_else(|| panic!("{path}"))
    };
    let seqs = of("pool.p.max_num_seqs");
    assert_eq!(seqs.value, "1024");
    let engine = Origin::Catalog {
        entry: "engine `vllm` from 0.21 on".to_owned(),
        as_of: "2026-05-14".to_owned(),
    };
    assert_eq!(seqs.origin, engine);
    assert_eq!(of("pool.p.memory_utilization").value, "0.92");
    assert_eq!(of("pool.p.max_model_len").value, "131072");
}

// ----- the schema

fn to_json(text: &str) -> serde_json::Value {
    fn value(v: &toml::Value) -> serde_json::Value {
        match v {
            toml::Value::String(s) => s.as_str().into(),
            toml::Value::Integer(i) => (*i).into(),
            toml::Value::Float(f) => (*f).into(),
            toml::Value::Boolean(b) => (*b).into(),
            toml::Value::Datetime(d) => d.to_string().into(),
            toml::Value::Array(a) => a.iter().map(value).collect(),
            toml::Value::Table(t) => {
                serde_json::Value::Object(t.iter().map(|(k, v)| (k.clone(), value(v))).collect())
            }
        }
    }
    value(&toml::Value::Table(toml::from_str(text).expect("TOML")))
}

fn examples() -> Vec<(String, String)> {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut files: Vec<_> =
        std::fs::read_dir(directory).expect("examples").map(|e| e.expect("entry").path()).collect();
    files.sort();
    let files = files.into_iter().filter(|p| p.extension().is_some_and(|e| e == "toml"));
    files
        .map(|p| (p.display().to_string(), std::fs::read_to_string(&p).expect("readable")))
        .collect()
}

/// An independent validator accepts the schema and, with it, every example, and refuses what we refuse.
#[test]
fn the_schema_agrees_with_an_independent_validator() {
    let schema = json_schema();
    jsonschema::meta::validate(&schema).expect("a valid JSON Schema");
    let validator = jsonschema::validator_for(&schema).expect("a usable schema");
    let examples = examples();
    assert!(examples.len() >= 6);
    for (name, text) in &examples {
        let document = to_json(text);
        let errors: Vec<String> = validator
            .iter_errors(&document)
            .map(|e| format!("{}: {e}", e.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{name}: {errors:#?}");
    }
    for broken in [
        "[[class]]\nname = \"c\"\ncache_hitt = 1",
        "[[class]]\nname = 7",
        "[[class]]\nrate = \"1/s\"",
        "[class]\nname = \"c\"",
        "[[class]]\nname = \"c\"\ntier = \"gold\"",
        "[[pool]]\nname = \"p\"\naccelerator = \"h100\"\ntensor_parallel = 0",
    ] {
        assert!(!validator.is_valid(&to_json(broken)), "{broken}");
    }
}

#[test]
fn every_example_is_fine() {
    for (name, text) in examples() {
        if let Err(mistakes) = parse(&Source::new(name.as_str(), text), builtin()) {
            panic!("{}", mistakes[0].render(false, 100));
        }
    }
}

// ----- strangers

proptest! {
    #![proptest_config(ProptestConfig::with_cases(plimsoll_testkit::cases(300)))]

    /// An example with a piece cut out, doubled or replaced: an answer, never a panic.
    #[test]
    fn mutated_scenarios_get_an_answer(which in 0usize..6, at in 0.0f64..1.0, length in 0usize..40, with in "[\\PC\\n]{0,12}") {
        let all = examples();
        let text = &all[which % all.len()].1;
        let floor = |mut i: usize| { while !text.is_char_boundary(i) { i -= 1; } i };
        let start = floor((at * text.len() as f64) as usize);
        let end = floor((start + length).min(text.len()));
        let mutated = format!("{}{with}{}", &text[..start], &text[end..]);
        if let Err(mistakes) = parse(&Source::new("x.toml", mutated.as_str()), builtin()) {
            prop_assert!(!mistakes.is_empty());
            for mistake in mistakes.iter().take(20) {
                prop_assert!(!mistake.render(false, 80).is_empty());
            }
        }
    }

    /// Anything at all.
    #[test]
    fn any_text_gets_an_answer(text in "[\\PC\\n]{0,200}") {
        let _ = parse(&Source::new("x.toml", text.as_str()), builtin());
        let _ = DeTable::parse(&text);
    }
}

// ----- the calendar

/// From 22 to 6 is a night, from 6 to 22 a day, and from 0 to 24 both.
#[test]
fn a_schedule_goes_over_midnight() {
    let hours = |from: u64, to: u64| -> Vec<u64> {
        let text = format!(
            "[[class]]\nname = \"c\"\nprofile = \"chat\"\nrate = \"1/s\"\n[[pool]]\nname = \"a\"\nmodel = \"llama-3.1-8b\"\n\
             accelerator = \"h100\"\n[autoscaling]\nschedule = [{{ pool = \"a\", from_hour = {from}, to_hour = {to}, replicas = 5 }}]\n"
        );
        let loaded = parse(&Source::new("x.toml", text), builtin()).expect("it is fine");
        let autoscaling = loaded.scenario.autoscaling.expect("a schedule");
        (0..24).filter(|hour| autoscaling.schedule[0].holds(*hour)).collect()
    };
    assert_eq!(hours(22, 6), [0, 1, 2, 3, 4, 5, 22, 23]);
    assert_eq!(hours(6, 22), (6..22).collect::<Vec<u64>>());
    assert_eq!(hours(0, 24), (0..24).collect::<Vec<u64>>());
}
